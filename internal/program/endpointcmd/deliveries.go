package endpointcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/webhooks"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

func (p *program) testCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test ID [PAYLOAD | @FILE | -]",
		Short: "Make one signed delivery now and say what came back",
		Long: `Makes one signed delivery from here, whatever the state of the endpoint, through the same guard and client as every delivery. It is not
logged and not tried again. Exits 1 if the endpoint did not take it.

Without PAYLOAD the body is a JSON object that says that it is a test.`,
		Args: cli.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var payload []byte
			if len(args) > 1 {
				var err error
				if payload, err = p.payload(args[1]); err != nil {
					return err
				}
			}
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error { return p.test(ctx, s, args[0], payload) })
		},
	}
	return cmd
}

func (p *program) test(ctx context.Context, s *session, id string, payload []byte) error {
	e, err := s.registry.Get(ctx, id)
	if err != nil {
		return err
	}
	sender, err := s.hooks.Sender()
	if err != nil {
		return err
	}
	defer sender.Close()
	r, err := webhookapi.Test(ctx, sender, e.Endpoint, payload)
	if err != nil {
		return err
	}
	if err := p.printTest(r); err != nil {
		return err
	}
	if !r.Delivered {
		return cli.Fail(cli.Failure, nil) // the result has said why
	}
	return nil
}

func (p *program) printTest(r webhookapi.TestResult) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, r)
	}
	result := "not delivered"
	if r.Delivered {
		result = "delivered"
	}
	status := "no answer"
	if r.Status > 0 {
		status = strconv.Itoa(r.Status)
	}
	_, err := fmt.Fprintf(p.IO.Out, "%s: %s (%s) in %s\n", result, status, r.Phase, r.Duration.Round(time.Microsecond))
	for _, text := range []string{r.Error, r.Excerpt} {
		if text != "" && err == nil {
			_, err = fmt.Fprintln(p.IO.Out, cli.OneLine(text))
		}
	}
	return err
}

// payload reads what the argument names.
func (p *program) payload(argument string) ([]byte, error) {
	if argument == "-" {
		text, err := io.ReadAll(p.IO.In)
		if err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
		return text, nil
	}
	name, ok := strings.CutPrefix(argument, "@")
	if !ok {
		return []byte(argument), nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Refuse("payload: %w", err)
	}
	return text, nil
}

func (p *program) attemptsCommand() *cobra.Command {
	var f journal.AttemptFilter
	var from, to string
	var g paging
	cmd := &cobra.Command{
		Use:   "attempts ID",
		Short: "List the calls to an endpoint, newest first",
		Args:  cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			var err error
			if from != "" {
				if f.From, err = cli.ParseWhen(from, now, -1); err != nil {
					return cli.Refuse("--from: %w", err)
				}
			}
			if to != "" {
				if f.To, err = cli.ParseWhen(to, now, -1); err != nil {
					return cli.Refuse("--to: %w", err)
				}
			}
			if err := g.check(); err != nil {
				return err
			}
			f.Endpoint = args[0]
			return p.with(cmd, needs{mode: backends.Existing}, func(ctx context.Context, s *session) error {
				return p.attempts(ctx, s, f, g)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.Failed, "failed", false, "only those that did not succeed")
	flags.StringVar(&f.Event, "event", "", "only those of the event with this `id`")
	flags.StringVar(&from, "from", "", "only those since then: a `time` (RFC 3339), or how long ago")
	flags.StringVar(&to, "to", "", "only those before then: a `time` (RFC 3339), or how long ago")
	g.register(flags)
	return cmd
}

func (p *program) attempts(ctx context.Context, s *session, f journal.AttemptFilter, g paging) error {
	found, next, err := s.open.Journal.Attempts(ctx, f, g.after, g.limit)
	if err != nil {
		return err
	}
	if _, filed := s.cfg.Webhook.Endpoints[f.Endpoint]; len(found) == 0 && !filed { // a deleted one may have some
		if _, err := s.registry.Get(ctx, f.Endpoint); errors.Is(err, webhook.ErrUnknownEndpoint) {
			return err
		}
	}
	if p.Settings.JSON {
		if found == nil {
			found = []journal.Attempt{}
		}
		return cli.JSON(p.IO.Out, map[string]any{"attempts": found, "next": next})
	}
	rows := make([][]string, len(found))
	for i, a := range found {
		status := "-"
		if a.Status > 0 {
			status = strconv.Itoa(a.Status)
		}
		said := a.Excerpt
		if a.Error != "" {
			said = a.Error
		}
		rows[i] = []string{cli.Time(a.At), a.Event, strconv.Itoa(a.Number), status, a.Phase, a.Duration.Round(took(a.Duration)).String(), cli.OrDash(cli.Cut(said, 80))}
	}
	if err := cli.Table(p.IO.Out, []string{"AT", "EVENT", "ATTEMPT", "STATUS", "PHASE", "TOOK", "ANSWER"}, rows); err != nil {
		return err
	}
	p.more(next)
	return nil
}

// took is what a duration is rounded to for people.
func took(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return 10 * time.Microsecond
	}
	return time.Millisecond
}

func (p *program) resendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resend ID EVENT...",
		Short: "Deliver events to an endpoint again, also those that were delivered",
		Long: `Enqueues events that were published once more for one endpoint, also those that it has taken: each as a job of its own, under the same
webhook-id, by which a receiver drops doubles. It waits like any delivery where the endpoint is paused or its breaker is open, and goes past the
ordered queue of an endpoint that asks for order. What an endpoint never got, recover sends.`,
		Args: cli.Args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, needs{mode: backends.Existing, broker: true}, func(ctx context.Context, s *session) error { return p.resend(ctx, s, args[0], args[1:]) })
		},
	}
}

func (p *program) recoverCommand() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "recover ID --since WHEN",
		Short: "Deliver all events since a time that an endpoint wants and has not got",
		Long: p.Text(`Replays the endpoint's dead letters that were stored since a time, and enqueues the events published since then that it wants and of which no
attempt is kept: also those of before the endpoint was added. Some of these may wait in the queue already; a copy of a delivery does no
harm. What was tried and waits for its next attempt is left alone, and what was delivered is not sent again, for as long as attempts and
idempotency keys are kept. It may be repeated, and is recorded in the audit log (PROGRAM dlq audit).`),
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			if since == "" {
				return cli.Refuse("--since is missing: give a duration such as 2h, or a time")
			}
			from, err := cli.ParseWhen(since, now, -1)
			if err != nil {
				return cli.Refuse("--since: %w", err)
			}
			if err := webhookapi.CheckSince(from, now); err != nil {
				return cli.Fail(cli.Usage, err)
			}
			return p.with(cmd, needs{mode: backends.Existing, broker: true}, func(ctx context.Context, s *session) error {
				return p.recover(ctx, s, args[0], from)
			})
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "a `time` (RFC 3339), or how long ago; required")
	return cmd
}

// enqueued is the JSON form of one resent event.
type enqueued struct {
	Event string `json:"event"`
	Job   string `json:"job"`
}

func (p *program) printEnqueued(e enqueued) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, e)
	}
	_, err := fmt.Fprintf(p.IO.Out, "event %s is enqueued as job %s\n", e.Event, e.Job)
	return err
}

func (p *program) resend(ctx context.Context, s *session, id string, events []string) error {
	e, again, err := s.redelivery(ctx, id)
	if err != nil {
		return err
	}
	return p.each(events, func(event string) error {
		job, err := again.Resend(ctx, e.Endpoint, event)
		if err != nil {
			return err
		}
		return p.printEnqueued(enqueued{event, job})
	})
}

func (p *program) recover(ctx context.Context, s *session, id string, since time.Time) error {
	e, again, err := s.redelivery(ctx, id)
	if err != nil {
		return err
	}
	report, err := again.RecoverSince(ctx, e.Endpoint, since)
	done := webhookapi.ShowRecovered(report)
	if err != nil && done.Missed+done.Replayed > 0 {
		err = cli.Fail(cli.Partial, err)
	}
	if err == nil && done.Left > 0 {
		err = cli.Fail(cli.Partial, fmt.Errorf("%s not replayed: %s dlq list --destination %s says why", cli.Count(done.Left, "dead letter"), p.Name, e.ID))
	}
	if p.Settings.JSON {
		return errors.Join(cli.JSON(p.IO.Out, done), err)
	}
	_, printErr := fmt.Fprintf(p.IO.Out, "enqueued %s that had no attempt, and replayed %s\n", cli.Count(done.Missed, "event"), cli.Count(done.Replayed, "dead letter"))
	return errors.Join(printErr, err)
}

// redelivery returns an endpoint, and what delivers events to it again.
func (s *session) redelivery(ctx context.Context, id string) (endpoints.Entry, *journal.Recovery, error) {
	e, err := s.registry.Get(ctx, id)
	if err != nil {
		return e, nil, err
	}
	client, err := webhooks.Client(ctx, s.open, s.cfg.UsualQueue())
	if err != nil {
		return e, nil, err
	}
	again, err := s.hooks.Recovery(s.open, client, cli.Actor())
	return e, again, err
}
