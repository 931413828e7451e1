package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

func (t *tool) watchCommand() *cobra.Command {
	var f filterFlags
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Follow the dead letters: new groups, and how they grow and shrink",
		Long: `Shows the selected entries by queue and group as groups does, again and again: a table that is drawn anew on a terminal, elsewhere a line for
each group at the start and for each change after it. A store that does not answer for a while is waited for. Of dead letters in the broker
it shows how many there are in each queue. Ctrl-C ends it, with exit code 0.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			if every < 100*time.Millisecond {
				return cli.Refuse("--interval %s: must be 100ms or more", every)
			}
			return t.watch(cmd, filter, every)
		},
	}
	f.register(cmd)
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "how often to look")
	return cmd
}

// queueGroup is one group in one queue.
type queueGroup struct {
	Queue string `json:"queue"`
	dlq.Group
}

// place is what names a group in a queue.
func (g queueGroup) place() [5]string {
	return [5]string{g.Queue, g.Kind, g.Destination, string(g.Cause), g.Fingerprint}
}

// watched is one line of JSON: a group, and how it changed.
type watched struct {
	At time.Time `json:"at"`
	// Event is now for what was there at the start, then new, more, fewer or gone.
	Event  string `json:"event"`
	Change int    `json:"change"`
	queueGroup
}

func (t *tool) watch(cmd *cobra.Command, f dlq.Filter, every time.Duration) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := cmd.Context()
	show := t.lines
	if t.IO.OutWatched() && !t.Settings.JSON {
		show = t.redraw
	}
	w := watch{start: time.Now()}
	for {
		groups, err := s.letters.byQueue(ctx, f)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, dlq.ErrUnavailable):
			fmt.Fprintf(t.IO.Err, "the store does not answer; still trying: %s\n", cli.OneLine(err.Error()))
		case err != nil:
			return err
		default:
			if err := show(&w, groups); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// watch is what was seen so far.
type watch struct {
	start  time.Time
	begun  bool
	atOnce int // entries at the start
	before []queueGroup
}

// changes returns what differs from the look before, and remembers groups for the next.
func (w *watch) changes(groups []queueGroup) (list []watched) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	old := map[[5]string]queueGroup{}
	for _, g := range w.before {
		old[g.place()] = g
	}
	for _, g := range groups {
		was, known := old[g.place()]
		delete(old, g.place())
		line := watched{At: now, Change: g.Count - was.Count, queueGroup: g}
		switch {
		case !w.begun:
			line.Event, line.Change = "now", 0
		case !known:
			line.Event = "new"
		case line.Change > 0:
			line.Event = "more"
		case line.Change < 0:
			line.Event = "fewer"
		default:
			continue
		}
		list = append(list, line)
	}
	for _, g := range w.before {
		if _, gone := old[g.place()]; gone {
			line := watched{At: now, Event: "gone", Change: -g.Count, queueGroup: g}
			line.Count = 0
			list = append(list, line)
		}
	}
	if !w.begun {
		w.begun, w.atOnce = true, total(groups)
	}
	w.before = slices.Clone(groups)
	return list
}

func total(groups []queueGroup) (n int) {
	for _, g := range groups {
		n += g.Count
	}
	return n
}

// lines prints changes.
func (t *tool) lines(w *watch, groups []queueGroup) error {
	first := !w.begun
	list := w.changes(groups)
	if first && len(list) == 0 && !t.Settings.JSON {
		fmt.Fprintln(t.IO.Err, "nothing matches yet")
	}
	for _, line := range list {
		if t.Settings.JSON {
			if err := cli.JSON(t.IO.Out, line); err != nil {
				return err
			}
			continue
		}
		cells := []string{cli.Time(line.At), fmt.Sprintf("%-5s", line.Event), counting(line.Count, line.Change)}
		cells = append(cells, describeGroup(line.queueGroup)...)
		if _, err := fmt.Fprintln(t.IO.Out, cli.OneLine(strings.Join(cells, "  "))); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// counting returns "7 (+2)".
func counting(n, change int) string {
	if change == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%+d)", n, change)
}

func describeGroup(g queueGroup) []string {
	return []string{
		cli.OrDash(g.Queue), cli.OrDash(g.Kind), cli.OrDash(g.Destination), cli.OrDash(string(g.Cause)), cli.OrDash(g.Fingerprint), cli.Cut(headline(g.Sample), 60),
	}
}

// byQueue groups what matches in each queue that has any.
func (s storeLetters) byQueue(ctx context.Context, f dlq.Filter) (list []queueGroup, err error) {
	queues := []string{f.Queue}
	if f.Queue == "" {
		if queues, err = s.deadQueues(ctx, f); err != nil {
			return nil, err
		}
	}
	for _, q := range queues {
		f.Queue = q
		groups, err := s.store.Groups(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			list = append(list, queueGroup{q, g})
		}
	}
	slices.SortStableFunc(list, func(a, b queueGroup) int { return b.Count - a.Count })
	return list, nil
}

// deadQueues returns the queues that have dead letters. Only those are counted at all times: of other states all configured queues are looked at.
func (s storeLetters) deadQueues(ctx context.Context, f dlq.Filter) ([]string, error) {
	depth, err := s.store.Depth(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range depth.Dead {
		names = append(names, d.Queue)
	}
	if !slices.Equal(f.StatesOrDead(), []dlq.State{dlq.StateDead}) {
		for _, q := range s.queues {
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// byQueue knows the queues alone.
func (b brokerLetters) byQueue(ctx context.Context, f dlq.Filter) (list []queueGroup, err error) {
	narrow := f
	narrow.Queue, narrow.States = "", nil
	if !everything(narrow) {
		return nil, b.call.needsStore("watch with a filter other than --queue")
	}
	if err := b.check(f); err != nil {
		return nil, err
	}
	depth, err := b.queues.Depth(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range depth.Dead {
		if d.Count > 0 && (f.Queue == "" || f.Queue == d.Queue) {
			list = append(list, queueGroup{d.Queue, dlq.Group{Cause: d.Cause, Count: d.Count}})
		}
	}
	return list, nil
}
