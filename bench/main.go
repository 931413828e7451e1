package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// config is what a run is made of.
type config struct {
	rounds  int
	jobs    int
	size    int
	slots   int
	pgSlots int
	keys    int
	filter  []string // the sides to run with a broker; empty means all
}

var groups = []struct {
	name string
	run  func(config) error
}{{"embedded", engine}, {"rabbitmq", rabbitMQ}, {"sqs", simpleQueue}, {"postgres", postgres}, {"framework", framework}, {"breaker", breakers}, {"webhooks", webhooks}, {"keys", keys}}

func main() {
	if os.Getenv(receiverVariable) != "" {
		if err := receiveHooks(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: receiver: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var c config
	var p profiles
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement; medians are printed")
	flag.IntVar(&c.jobs, "jobs", 20000, "jobs per round")
	flag.IntVar(&c.size, "size", 1024, "payload bytes")
	flag.IntVar(&c.slots, "slots", 64, "worker slots, prefetch, and goroutines of the raw loop")
	flag.IntVar(&c.pgSlots, "pg-slots", 1024, "worker slots of the group postgres, whose rival has 2,000")
	flag.IntVar(&c.keys, "keys", 10_000_000, "keys of the group keys")
	only := flag.String("only", "", "run these groups only, separated by commas: embedded, rabbitmq, sqs, postgres, framework, breaker, webhooks, and keys, which runs only if it is named")
	sides := flag.String("sides", "", "with a broker: run these sides only, separated by commas: bare, \"bare pool\", driver, worker, worker+claims; with webhooks the names that it prints, without commas; for profiles")
	live := flag.Int("heap", 32, "MB of heap to hold while measuring, on all sides: what programs of package worker/app hold, or 0")
	p.flags()
	flag.Parse()
	c.filter = words(*sides)
	if err := checkWords(words(*only)); err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d cores, %d rounds of %d jobs of %d bytes, %d slots, %d MB held\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), c.rounds, c.jobs, c.size, c.slots, *live)
	stop, err := p.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	held := make([]byte, *live<<20)
	defer runtime.KeepAlive(held)
	var errs []error // a server that is missing ends its own group only
	for _, g := range groups {
		chosen := words(*only)
		if len(chosen) == 0 && g.name == "keys" || len(chosen) > 0 && !slices.Contains(chosen, g.name) {
			continue
		}
		if err := g.run(c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g.name, err))
		}
	}
	return errors.Join(errs...)
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

func checkWords(chosen []string) error {
	for _, name := range chosen {
		known := false
		for _, g := range groups {
			known = known || g.name == name
		}
		if !known {
			return fmt.Errorf("-only %s: there is no such group", name)
		}
	}
	return nil
}
