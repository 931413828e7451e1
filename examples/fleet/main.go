package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			os.Exit(1)
		}
		return
	}
	var p plan
	flag.StringVar(&p.Broker, "broker", brokerEmbedded, "`where` the queue lives: embedded or rabbitmq")
	flag.StringVar(&p.URL, "url", "amqp://guest:guest@127.0.0.1:5672/", "`address` of RabbitMQ")
	flag.IntVar(&p.Endpoints, "endpoints", 5000, "how many endpoints there are, from 100 to 1,000,000")
	flag.Float64Var(&p.Rate, "rate", 500, "events per second")
	flag.DurationVar(&p.For, "for", 2*time.Minute, "how long each of the two runs sends")
	flag.Uint64Var(&p.Seed, "seed", 1, "what the endpoints' latencies and the events' targets are drawn from")
	flag.StringVar(&p.Profile, "cpuprofile", "", "write the worker's CPU profile of the last run to this `file`")
	alone := flag.Bool("healthy-only", false, "leave the run with the sick endpoints out; nothing is judged then")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "fleet: unknown argument %q: there are only flags, see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, p, *alone, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func (p plan) check() error {
	switch {
	case p.Broker != brokerEmbedded && p.Broker != brokerRabbitMQ:
		return fmt.Errorf("-broker %q: use embedded or rabbitmq", p.Broker)
	case p.Endpoints < 100 || p.Endpoints > 1_000_000:
		return fmt.Errorf("-endpoints %d: use 100 to 1000000, so that there are some of each class and addresses for all", p.Endpoints)
	case !(p.Rate >= 1 && p.Rate <= 100_000):
		return fmt.Errorf("-rate %v: use 1 to 100000 events per second", p.Rate)
	case p.For < time.Second || p.For > time.Hour:
		return fmt.Errorf("-for %s: use 1s to 1h", p.For)
	}
	return nil
}

// run makes both runs, tells how they went on out, and returns an error unless all bounds held.
func run(ctx context.Context, p plan, alone bool, out io.Writer) error {
	r, err := both(ctx, p, alone, out)
	if err != nil || alone {
		return err
	}
	return r.judge(timing)
}

// both makes the run without the sick endpoints, and unless alone is set the one with them, and prints what came out.
func both(ctx context.Context, p plan, alone bool, out io.Writer) (comparison, error) {
	if err := p.check(); err != nil {
		return comparison{}, err
	}
	fmt.Fprintf(out, "%d endpoints, %v events per second for %s, %s queue, one worker with %d slots, seed %d\n\n",
		p.Endpoints, p.Rate, p.For, p.Broker, slots, p.Seed)
	r := comparison{plan: p}
	profile := p.Profile
	if !alone {
		p.Profile = ""
	}
	var err error
	if r.without, err = once(ctx, p, out); err != nil || alone {
		r.without.summary(out)
		return r, err
	}
	p.Sick, p.Profile = true, profile
	if r.with, err = once(ctx, p, out); err != nil {
		return r, err
	}
	r.print(out)
	return r, nil
}

// once is one run from an empty queue to its account.
func once(ctx context.Context, p plan, out io.Writer) (o outcome, err error) {
	if p.Dir, err = os.MkdirTemp("", "caisson-fleet-"); err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.Dir)) }()
	p.Prefix = "fleet-" + strings.ToLower(rand.Text()[:8]) + "."
	if p.Broker == brokerRabbitMQ {
		defer func() { err = errors.Join(err, dropRabbitMQ(p)) }()
	}
	s := &stage{plan: p, out: out}
	defer s.clear()
	if err := s.set(ctx); err != nil {
		return o, err
	}
	if err := s.follow(ctx); err != nil {
		return o, err
	}
	return s.end(ctx)
}
