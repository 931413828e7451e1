package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	filterFlags
	to                        string
	rate                      float64
	canary                    int
	maxFail                   string
	canaryWait                time.Duration
	dropDeadline, dryRun, yes bool
	force, waitBreaker        bool
	waitBreakerFor            time.Duration
	reservation               time.Duration
}

func (t *tool) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Publish dead jobs again, each as the next run of its job",
		Long: `Publishes the selected dead letters again: same job id, key, headers and payload bytes, as the next run, with all attempts fresh. Each
message is published and confirmed before its entry is marked, so that nothing is lost whenever the tool is stopped. Ctrl-C ends it after
the batch at hand; the same command goes on with what is left. Entries that are stored after the replay began are not part of it.

What has completed meanwhile, by its idempotency key, is left out: it stays dead, and its work is done. Keys are remembered for
idempotency.retention; of jobs that died before that the dry run says that nobody can tell any more. --force really runs completed jobs
again, each under a key of its own.

--wait-breaker holds jobs while the breaker of their destination is open, replays the others meanwhile, and goes on when it closes. It
reads what running workers report, and does not begin where none does.

--canary replays a few jobs first and goes on only if at most --max-fail of them have died again. It needs jobs with idempotency keys:
others are never known to have succeeded, and it needs a dead-letter store.

From the broker's own queues a dead letter leaves when its new message is confirmed. What does not match is kept aside until the end: if that
is more than 10,000 messages, the replay stops and says so.

Exits 1 if nothing was replayed although something was to be, 4 if some entries were not, or a canary or a breaker kept the rest dead, and
130 after ctrl-C. Entries that have completed meanwhile, or were replayed before, are no failure; an --id that no entry has is one.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := f.plan(cmd, time.Now())
			if err != nil {
				return err
			}
			return t.replay(cmd, plan, f)
		},
	}
	f.register(cmd)
	f.registerAll(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "`queue` to replay to; each entry's own if it is not given")
	flags.Float64Var(&f.rate, "rate", 0, "at most this `many` jobs per second; 0 is no limit")
	flags.IntVar(&f.canary, "canary", 0, "replay this `many` jobs first and wait for what becomes of them")
	flags.StringVar(&f.maxFail, "max-fail", "0%", "`share` of the canary that may die again, for example 20%")
	flags.DurationVar(&f.canaryWait, "canary-wait", 5*time.Minute, "how long to wait for the canary")
	flags.BoolVar(&f.dropDeadline, "drop-deadline", false, "replay jobs whose deadline has passed, without it; else they are refused")
	flags.BoolVar(&f.force, "force", false, "run jobs again although they have completed meanwhile, each under a key of its own")
	flags.BoolVar(&f.waitBreaker, "wait-breaker", false, "hold jobs whose destination's breaker is open until it closes")
	flags.DurationVar(&f.waitBreakerFor, "wait-breaker-for", 0, "how long to wait when only held jobs are left; 0 is for ever")
	flags.DurationVar(&f.reservation, "reservation", time.Minute, "how long a batch is kept from other replays, so also from the next after a crash")
	flags.BoolVar(&f.dryRun, "dry-run", false, "change nothing; say how many jobs would go to which queues and destinations")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// plan returns the replay that the flags describe, without stores and broker.
func (f *replayFlags) plan(cmd *cobra.Command, now time.Time) (replay.Config, error) {
	filter, err := f.chosen(now)
	if err != nil {
		return replay.Config{}, err
	}
	plan := replay.Config{
		Filter: filter, Queue: f.to, Rate: f.rate, DropDeadline: f.dropDeadline, DryRun: f.dryRun,
		Canary: replay.Canary{Size: f.canary, Wait: f.canaryWait}, Force: f.force, Reservation: f.reservation,
		Breakers: replay.BreakerWait{For: f.waitBreakerFor},
	}
	switch {
	case slices.ContainsFunc(filter.States, func(s dlq.State) bool { return s != dlq.StateDead }):
		return plan, cli.Refuse("--state: only dead entries can be replayed; held ones are released by workers")
	case len(f.empty("to")) > 0:
		return plan, cli.Fail(cli.Usage, errors.Join(f.empty("to")...))
	case !(f.rate >= 0) || math.IsInf(f.rate, 0): // written so that NaN is refused
		return plan, cli.Refuse("--rate %v: must be a number and not negative; 0 is no limit", f.rate)
	case f.canary < 0 || f.canaryWait <= 0:
		return plan, cli.Refuse("--canary %d, --canary-wait %s: must not be negative", f.canary, f.canaryWait)
	case f.canary == 0 && (cmd.Flags().Changed("max-fail") || cmd.Flags().Changed("canary-wait")):
		return plan, cli.Refuse("--max-fail and --canary-wait need --canary")
	case f.waitBreakerFor < 0 || f.reservation < time.Second:
		return plan, cli.Refuse("--wait-breaker-for %s, --reservation %s: must not be negative, and a reservation lasts 1s or more", f.waitBreakerFor, f.reservation)
	case f.waitBreakerFor > 0 && !f.waitBreaker:
		return plan, cli.Refuse("--wait-breaker-for needs --wait-breaker")
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(f.maxFail, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return plan, cli.Refuse("--max-fail %q: write a share from 0%% to 100%%", f.maxFail)
	}
	plan.Canary.MaxFail = percent
	return plan, nil
}

func (t *tool) replay(cmd *cobra.Command, plan replay.Config, f replayFlags) (err error) {
	ctx := cmd.Context()
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.equip(&plan, f); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.unknown(ctx, plan.Filter)) }()
	if !plan.DryRun && !f.yes {
		what, err := t.question(ctx, s, plan)
		if err != nil {
			return err
		}
		if what != "" {
			if err := t.confirm(ctx, false, what); err != nil {
				return err
			}
		}
	}
	bar := t.newProgress(plan)
	plan.Progress = bar.show
	result, err := s.letters.replay(ctx, plan)
	bar.end()
	if err != nil && result.ID == "" {
		return err // not even begun
	}
	if err := t.printReport(result, plan); err != nil {
		return err
	}
	return replayOutcome(ctx, result, err)
}

// equip gives the plan what the session knows.
func (s *session) equip(plan *replay.Config, f replayFlags) error {
	if s.store == nil {
		switch {
		case plan.Canary.Size > 0:
			return s.call.needsStore("--canary")
		case f.waitBreaker:
			return s.call.needsStore("--wait-breaker")
		}
	}
	plan.KeyRetention = s.keyRetention
	if s.Claims != nil {
		plan.Claims = s.Claims
	} else if f.force {
		return cli.Refuse("--force: there is no claim store here, so that nothing is known to have completed and nothing is left out: leave the flag away")
	}
	if f.waitBreaker {
		var err error
		plan.Breakers.Breakers, err = s.breakers()
		return err
	}
	return nil
}

// question returns what to ask before plan is carried out, after a dry run where that is cheap. There is nothing to ask where nothing would
// be published.
func (t *tool) question(ctx context.Context, s *session, plan replay.Config) (string, error) {
	if s.store == nil {
		what, _, err := s.letters.scope(ctx, plan.Filter)
		if err != nil || what == "" {
			return "", err
		}
		return "Replay " + what + "?", nil
	}
	plan.DryRun = true
	bar := t.newProgress(plan)
	plan.Progress = bar.show
	result, err := s.letters.replay(ctx, plan)
	bar.end()
	if err != nil || result.Replayed+result.Held == 0 {
		return "", err
	}
	text := "Replay " + targetsText(result.Report) + "?"
	if notes := leftOut(result.Report, plan); len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return text, nil
}

// replayOutcome turns the end of a replay into the program's.
func replayOutcome(ctx context.Context, r replayResult, err error) error {
	switch {
	case err != nil && ctx.Err() != nil && r.ScanReport != nil:
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: %d jobs were replayed, the others stay dead; run the same command again to go on", r.Replayed))
	case err != nil && ctx.Err() != nil:
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: %d jobs were replayed and marked, %d are left and stay dead; run the same command again to go on", r.Replayed, r.Left))
	case err != nil && r.Replayed > 0:
		return cli.Fail(cli.Partial, err)
	case err != nil:
		return err
	case r.DryRun:
		return nil
	case r.Left > 0 && r.ScanReport == nil: // held ones are not among them
		return cli.Fail(cli.Partial, fmt.Errorf("%d entries are in the hands of another replay, or of one that was killed and whose reservation (--reservation) is not over: run the same command again later", r.Left))
	case r.Refused > 0 && r.Replayed == 0:
		return fmt.Errorf("all %d entries were refused", r.Refused)
	case r.Refused > 0:
		return cli.Fail(cli.Partial, nil) // the report has said why
	}
	return nil
}
