package dlqcmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// brokerLetters are dead letters in the broker's own queues. They can be searched only by receiving them.
type brokerLetters struct {
	queues *brokerdlq.Queues
	call   caller
}

// check refuses filters that nothing in a broker can match.
func (b brokerLetters) check(f dlq.Filter) error {
	if slices.ContainsFunc(f.States, func(s dlq.State) bool { return s != dlq.StateDead }) && !slices.Contains(f.States, dlq.StateDead) {
		return b.call.needsStore("--state " + join(f.States))
	}
	return nil
}

func (b brokerLetters) sample(ctx context.Context, f dlq.Filter, n int) ([]dlq.Entry, *sample, error) {
	if err := b.check(f); err != nil {
		return nil, nil, err
	}
	if n == 0 {
		n = math.MaxInt
	}
	entries, scanned, err := b.queues.Sample(ctx, f, n)
	return entries, &sample{Looked: scanned.Looked, Complete: err == nil && !scanned.Incomplete}, err
}

func (b brokerLetters) list(ctx context.Context, f dlq.Filter, after string, limit int) (entryList, error) {
	if after != "" {
		return entryList{}, b.call.needsStore("--after")
	}
	found, note, err := b.sample(ctx, f, limit)
	return entryList{Entries: append([]dlq.Entry{}, found...), Sample: note}, err
}

func (b brokerLetters) get(ctx context.Context, id string) (dlq.Entry, error) {
	found, note, err := b.sample(ctx, dlq.Filter{IDs: []string{id}}, 1)
	switch {
	case err != nil:
		return dlq.Entry{}, err
	case len(found) > 0:
		return found[0], nil
	case !note.Complete:
		return dlq.Entry{}, fmt.Errorf("%s is not among the first %d dead letters in the broker: move them to a store with %s import", id, note.Looked, b.call)
	}
	return dlq.Entry{}, fmt.Errorf("%s: %w", id, dlq.ErrNotFound)
}

// groupKey is what entries of one group share.
type groupKey struct {
	kind, destination, fingerprint string
	cause                          dlq.Cause
}

func (b brokerLetters) groups(ctx context.Context, f dlq.Filter) (groupList, error) {
	found, note, err := b.sample(ctx, f, 0)
	byKey := map[groupKey]*dlq.Group{}
	for _, e := range found {
		key := groupKey{e.Kind, e.Destination, e.Fingerprint, e.Cause}
		g := byKey[key]
		if g == nil {
			g = &dlq.Group{
				Kind: e.Kind, Destination: e.Destination, Cause: e.Cause, Fingerprint: e.Fingerprint, FirstAt: e.StoredAt, LastAt: e.StoredAt, Sample: e.Error,
			}
			byKey[key] = g
		}
		g.Count++
		if e.StoredAt.Before(g.FirstAt) {
			g.FirstAt = e.StoredAt
		}
		if !e.StoredAt.Before(g.LastAt) {
			g.LastAt, g.Sample = e.StoredAt, e.Error
		}
	}
	list := groupList{Groups: []dlq.Group{}, Sample: note}
	for _, g := range byKey {
		list.Groups = append(list.Groups, *g)
	}
	slices.SortFunc(list.Groups, func(a, b dlq.Group) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Kind+a.Destination+string(a.Cause)+a.Fingerprint, b.Kind+b.Destination+string(b.Cause)+b.Fingerprint)
	})
	return list, err
}

func (b brokerLetters) each(ctx context.Context, f dlq.Filter, visit func(dlq.Entry) error) (string, error) {
	found, note, err := b.sample(ctx, f, 0)
	if err != nil {
		return "", err
	}
	for _, e := range found {
		if err := visit(e); err != nil {
			return "", err
		}
	}
	if note.Complete {
		return "", nil
	}
	return fmt.Sprintf("only the first %d dead letters in the broker were looked at: move all to a store with %s import --store FILE, and export from that",
		note.Looked, b.call), nil
}

func (b brokerLetters) scope(ctx context.Context, f dlq.Filter) (what string, until time.Time, err error) {
	until = time.Now()
	if err := b.check(f); err != nil {
		return "", until, err
	}
	depth, err := b.queues.Depth(ctx)
	if err != nil {
		return "", until, err
	}
	n := 0
	for _, d := range depth.Dead {
		if f.Queue == "" || f.Queue == d.Queue {
			n += d.Count
		}
	}
	if n == 0 {
		return "the dead letters in the broker that match", until, nil // it may not know how many there are
	}
	return fmt.Sprintf("what matches of about %d dead letters in the broker", n), until, nil
}

func (b brokerLetters) purge(ctx context.Context, f dlq.Filter, until time.Time, dryRun bool) (purgeResult, error) {
	if dryRun {
		found, note, err := b.sample(ctx, f, 0)
		if err != nil {
			return purgeResult{}, err
		}
		return purgeResult{DryRun: true, Matched: len(found), Sample: note}, nil
	}
	purged, scanned, err := b.queues.Purge(ctx, before(f, until))
	return purgeResult{Matched: purged, Purged: purged, ScanReport: &scanned}, err
}

func (b brokerLetters) replay(ctx context.Context, plan replay.Config) (replayResult, error) {
	report, scanned, err := b.queues.Replay(ctx, plan)
	if errors.Is(err, brokerdlq.ErrTooMany) && report.Replayed == 0 {
		err = cli.Fail(cli.Failure, err)
	}
	return replayResult{Report: report, ScanReport: &scanned}, err
}
