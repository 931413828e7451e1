package main

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
	"github.com/caisson-go/caisson/internal/cli"
	"github.com/caisson-go/caisson/internal/stack"
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
}

func (t *tool) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Publish dead jobs again, each as the next run of its job",
		Long: `Publishes the selected dead letters again: same job id, key, headers and payload bytes, as the next run, with all attempts fresh. Each
message is published and confirmed before its entry is marked, so that nothing is lost whenever the tool is stopped. Ctrl-C ends it after
the batch at hand; the same command goes on with what is left. Entries that are stored after the replay began are not part of it.

--canary replays a few jobs first and goes on only if at most --max-fail of them have died again. It needs jobs with idempotency keys:
others are never known to have succeeded.

Exits 1 if nothing was replayed although something matched, 4 if some entries were not, or a canary kept the rest dead, and 130 after
ctrl-C.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := f.plan(cmd, time.Now())
			if err != nil {
				return err
			}
			return t.replay(cmd, plan, f.yes)
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
	flags.BoolVar(&f.dryRun, "dry-run", false, "change nothing; say how many jobs would go to which queues and destinations")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// plan returns the replay that the flags describe, without stores and broker.
func (f *replayFlags) plan(cmd *cobra.Command, now time.Time) (dlq.ReplayConfig, error) {
	filter, err := f.chosen(now)
	if err != nil {
		return dlq.ReplayConfig{}, err
	}
	plan := dlq.ReplayConfig{
		Filter: filter, Queue: f.to, Rate: f.rate, DropDeadline: f.dropDeadline, DryRun: f.dryRun,
		Canary: dlq.Canary{Size: f.canary, Wait: f.canaryWait},
	}
	switch {
	case slices.ContainsFunc(filter.States, func(s dlq.State) bool { return s != dlq.Dead }):
		return plan, cli.Refuse("--state: only dead entries can be replayed; held ones are released by workers")
	case len(f.empty("to")) > 0:
		return plan, cli.Fail(cli.Usage, errors.Join(f.empty("to")...))
	case !(f.rate >= 0) || math.IsInf(f.rate, 0): // written so that NaN is refused
		return plan, cli.Refuse("--rate %v: must be a number and not negative; 0 is no limit", f.rate)
	case f.canary < 0 || f.canaryWait <= 0:
		return plan, cli.Refuse("--canary %d, --canary-wait %s: must not be negative", f.canary, f.canaryWait)
	case f.canary == 0 && (cmd.Flags().Changed("max-fail") || cmd.Flags().Changed("canary-wait")):
		return plan, cli.Refuse("--max-fail and --canary-wait need --canary")
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(f.maxFail, "%"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return plan, cli.Refuse("--max-fail %q: write a share from 0%% to 100%%", f.maxFail)
	}
	plan.Canary.MaxFail = percent
	return plan, nil
}

func (t *tool) replay(cmd *cobra.Command, plan dlq.ReplayConfig, yes bool) (err error) {
	ctx := cmd.Context()
	s, err := t.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	plan.Store, plan.Broker = s.DeadLetters, s.Broker
	if plan.Canary.Size > 0 {
		plan.Canary.Outcomes = dlq.StoreOutcomes{Claims: s.Claims, Letters: s.DeadLetters}
	}
	var to targets
	if plan.DryRun || !yes {
		if to, err = targetsOf(ctx, s, plan); err != nil {
			return err
		}
	}
	if !plan.DryRun && (yes || to.jobs > 0) {
		if err := t.confirm(ctx, yes, "Replay "+to.String()+"?"); err != nil {
			return err
		}
	}
	bar := t.newProgress(plan)
	plan.Progress = bar.show
	r, err := dlq.NewReplay(plan)
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	report, err := r.Run(ctx)
	bar.end()
	if err := t.printReport(report, to); err != nil {
		return err
	}
	return replayOutcome(ctx, report, err)
}

// targets is where jobs would go.
type targets struct {
	jobs                 int
	Queues, Destinations map[string]int
}

func targetsOf(ctx context.Context, s *stack.Stack, plan dlq.ReplayConfig) (targets, error) {
	to := targets{Queues: map[string]int{}, Destinations: map[string]int{}}
	_, err := eachEntry(ctx, s.DeadLetters, plan.Filter, "", 0, func(e dlq.Entry) error {
		to.jobs++
		if plan.Queue != "" {
			e.Queue = plan.Queue
		}
		to.Queues[e.Queue]++
		if e.Destination != "" {
			to.Destinations[e.Destination]++
		}
		return nil
	})
	return to, err
}

// String returns "3 jobs to queues mail (2), hooks (1), for destinations shop (3)".
func (to targets) String() string {
	text := fmt.Sprintf("%d jobs", to.jobs)
	if len(to.Queues) > 0 {
		text += " to queues " + counted(to.Queues)
	}
	if len(to.Destinations) > 0 {
		text += ", for destinations " + counted(to.Destinations)
	}
	return text
}

// counted lists the names with their numbers, largest first, at most ten.
func counted(numbers map[string]int) string {
	var names []string
	for name := range numbers {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if numbers[a] != numbers[b] {
			return numbers[b] - numbers[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(len(names), 10)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", cli.OneLine(name), numbers[name]))
	}
	if more := len(names) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// replayOutcome turns the end of a replay into the program's.
func replayOutcome(ctx context.Context, r dlq.Report, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: %d jobs were replayed and marked, %d are left and stay dead; run the same command again to go on", r.Replayed, r.Left))
	case err != nil && r.Replayed > 0:
		return cli.Fail(cli.Partial, err)
	case err != nil:
		return err
	case r.DryRun:
		return nil
	case r.Left > 0:
		return cli.Fail(cli.Partial, fmt.Errorf("%d entries are in the hands of another replay, or of one that was killed less than a minute ago: run the same command again later", r.Left))
	case r.Refused > 0 && r.Replayed == 0:
		return fmt.Errorf("all %d entries were refused", r.Refused)
	case r.Refused > 0:
		return cli.Fail(cli.Partial, nil) // the report has said why
	}
	return nil
}
