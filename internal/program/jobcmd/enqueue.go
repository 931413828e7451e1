package jobcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// enqueueFlags are the flags of enqueue.
type enqueueFlags struct {
	queue, id, key, destination string
	version                     int
	delay, at, deadline         string
	headers                     []string
	count                       int
	lines                       bool
}

// Command returns the command enqueue.
func Command(p *cli.Program) *cobra.Command { return (&program{p}).enqueueCommand() }

type program struct{ *cli.Program }

func (p *program) enqueueCommand() *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue KIND [PAYLOAD | @FILE | -]",
		Short: "Put jobs in a queue and print their ids",
		Long: `Puts one job in its queue and prints its id once the broker has confirmed it.

PAYLOAD is taken byte for byte, from the argument, from @FILE, or from standard input (-). Without it the payload is empty.

--lines makes one job of each line that is not empty, for example of a JSONL file; --count makes the same job several times. Both print one
result per job, in order, and exit 4 if some were not accepted. With --id their ids are the given one with -1, -2 and so on behind it, so
that repeating a command that was cut off runs no job twice.`,
		Example: p.Text(`  PROGRAM enqueue email.send '{"to":"ann@example.com"}'
  PROGRAM enqueue email.send @mail.json --delay 10m --key welcome-ann
  PROGRAM enqueue webhook.deliver --destination shop --lines --id import-7 - < events.jsonl`),
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.count = max(f.count, 0)
			if cmd.Flags().Changed("count") && f.count == 0 {
				return cli.Refuse("--count: must be at least 1")
			}
			return p.enqueue(cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "`name` of the queue; without it "+worker.DefaultQueue+", or the first one configured if that is not among them")
	flags.StringVar(&f.id, "id", "", "job `id`; made if it is not given")
	flags.StringVar(&f.key, "key", "", "idempotency `key`; without it what the kind makes of the payload, else the id")
	flags.StringVar(&f.destination, "destination", "", "`destination` that breaker and limits isolate by")
	flags.IntVar(&f.version, "payload-version", 0, "`version` of the payload")
	flags.StringVar(&f.delay, "delay", "", "`duration` until the job is due, for example 10m")
	flags.StringVar(&f.at, "at", "", "`time` when the job is due (RFC 3339)")
	flags.StringVar(&f.deadline, "deadline", "", "`time` (RFC 3339) or duration from now after which the job is not started")
	flags.StringArrayVar(&f.headers, "header", nil, "`name=value` that travels with the job; may be given several times")
	flags.IntVar(&f.count, "count", 0, "make the same job this `many` times")
	flags.BoolVar(&f.lines, "lines", false, "make one job of each line of the payload")
	return cmd
}

func (p *program) enqueue(cmd *cobra.Command, f enqueueFlags, args []string) error {
	cfg, err := p.Load(cmd)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("queue") {
		f.queue = cfg.UsualQueue()
	}
	job, err := f.job(args[0], time.Now())
	if err != nil {
		return err
	}
	argument := ""
	if len(args) > 1 {
		argument = args[1]
	}
	payload, err := p.payload(cmd.Context(), argument)
	if err != nil {
		return err
	}
	defer payload.Close()
	if err := cfg.CheckQueueName(f.queue); err != nil {
		return cli.Refuse("--queue: %w", err)
	}
	var all *source
	switch {
	case f.lines:
		all = fromLines(job, payload)
	default:
		data, err := io.ReadAll(payload)
		if err != nil {
			return fmt.Errorf("read payload: %w", err)
		}
		job.Payload = data
		all = fromOne(job, max(f.count, 1))
	}
	s, err := backends.OpenSoon(cmd.Context(), cfg, backends.Create)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // nothing is buffered: each result was confirmed
	return p.publish(cmd.Context(), s, job.Queue, all, f.lines || f.count > 0)
}

// publish creates the queue if it is missing and puts the jobs in it.
func (p *program) publish(ctx context.Context, s *backends.Set, queue string, all *source, several bool) error {
	if err := s.Broker.CreateQueue(ctx, queue); err != nil {
		return err
	}
	client, err := worker.NewClient(worker.ClientConfig{Broker: s.Broker})
	if err != nil {
		return err
	}
	printer := resultPrinter{io: p.IO, json: p.Settings.JSON, several: several}
	return all.enqueue(ctx, client, printer.result)
}

// job returns the job that the flags describe, without its payload.
func (f enqueueFlags) job(kind string, now time.Time) (worker.NewJob, error) {
	job := worker.NewJob{Kind: kind, Version: f.version, ID: f.id, Key: f.key, Destination: f.destination, Queue: f.queue}
	var errs []error
	var err error
	if err := config.CheckQueueName(f.queue); err != nil {
		errs = append(errs, fmt.Errorf("--queue: %w", err))
	}
	if f.lines && f.count > 0 {
		errs = append(errs, errors.New("--lines and --count exclude each other"))
	}
	if f.delay != "" && f.at != "" {
		errs = append(errs, errors.New("--delay and --at exclude each other"))
	}
	if f.delay != "" {
		if job.Delay, err = schedule.ParseDuration(f.delay); err != nil || job.Delay < 0 {
			errs = append(errs, fmt.Errorf("--delay: %w", cause(err, "must not be negative")))
		}
	}
	if f.at != "" {
		if job.At, err = time.Parse(time.RFC3339, f.at); err != nil {
			errs = append(errs, fmt.Errorf("--at %q: write a time like %s", f.at, now.UTC().Format(time.RFC3339)))
		}
	}
	if f.deadline != "" {
		if job.Deadline, err = cli.ParseWhen(f.deadline, now, 1); err != nil {
			errs = append(errs, fmt.Errorf("--deadline: %w", err))
		}
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("--header %q: write name=value", h))
			continue
		}
		if job.Headers == nil {
			job.Headers = map[string]string{}
		}
		job.Headers[name] = value
	}
	if err := checkEnvelope(job, now); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return job, cli.Fail(cli.Usage, err)
	}
	return job, nil
}

// checkEnvelope finds what no job may be called, before a file is made for it, and names it as the command line does.
func checkEnvelope(job worker.NewJob, now time.Time) error {
	_, err := queue.Envelope{
		ID: cmp.Or(job.ID, "made-later"), Kind: job.Kind, Version: job.Version, Key: job.Key, Destination: job.Destination,
		EnqueuedAt: now, Headers: job.Headers,
	}.Encode()
	var bad *queue.EnvelopeError
	if !errors.As(err, &bad) {
		return err
	}
	names := map[string]string{"kind": "KIND", "kind_version": "--payload-version", "headers": "--header"}
	return fmt.Errorf("%s: %s: %q", cmp.Or(names[bad.Field], "--"+bad.Field), bad.Problem, bad.Value)
}

func cause(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// payload opens what the argument names. The caller closes it.
func (p *program) payload(ctx context.Context, argument string) (io.ReadCloser, error) {
	if argument == "-" {
		return interruptible(ctx, p.IO.In), nil
	}
	name, ok := strings.CutPrefix(argument, "@")
	if !ok {
		return io.NopCloser(strings.NewReader(argument)), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.Refuse("payload: %w", err)
	}
	return f, nil
}

// interruptible returns r with reads that the end of ctx cuts short, as a read from a terminal cannot be.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return out
}
