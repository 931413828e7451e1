package dlqcmd

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/replay"
)

// storeLetters are dead letters in a store.
type storeLetters struct{ *session }

func (s storeLetters) list(ctx context.Context, f dlq.Filter, after string, limit int) (entryList, error) {
	page := entryList{Entries: []dlq.Entry{}}
	var err error
	page.Next, err = eachEntry(ctx, s.store, f, after, limit, func(e dlq.Entry) error {
		page.Entries = append(page.Entries, e)
		return nil
	})
	return page, err
}

func (s storeLetters) get(ctx context.Context, id string) (dlq.Entry, error) {
	return s.store.Get(ctx, id)
}

func (s storeLetters) groups(ctx context.Context, f dlq.Filter) (groupList, error) {
	groups, err := s.store.Groups(ctx, f)
	return groupList{Groups: append([]dlq.Group{}, groups...)}, err
}

// each leaves out entries that are deleted in the meantime.
func (s storeLetters) each(ctx context.Context, f dlq.Filter, visit func(dlq.Entry) error) (string, error) {
	_, err := eachEntry(ctx, s.store, f, "", 0, func(e dlq.Entry) error {
		e, err := s.store.Get(ctx, e.ID)
		if errors.Is(err, dlq.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(e)
	})
	return "", err
}

func (s storeLetters) scope(ctx context.Context, f dlq.Filter) (what string, until time.Time, err error) {
	newest, _, err := s.store.List(ctx, f, "", 1)
	if err != nil || len(newest) == 0 {
		return "", time.Unix(0, 0), err // before everything
	}
	until = newest[0].StoredAt.Add(time.Microsecond) // by the store's clock, in its unit
	n, err := s.store.Count(ctx, before(f, until))
	return entriesText(n), until, err
}

// before returns f without what is stored at until or later. Zero is no bound.
func before(f dlq.Filter, until time.Time) dlq.Filter {
	if !until.IsZero() && (f.Until.IsZero() || until.Before(f.Until)) {
		f.Until = until
	}
	return f
}

func (s storeLetters) purge(ctx context.Context, f dlq.Filter, until time.Time, dryRun bool) (purgeResult, error) {
	result := purgeResult{DryRun: dryRun}
	var err error
	if result.Matched, err = s.store.Count(ctx, before(f, until)); err != nil || dryRun {
		return result, err
	}
	record, err := s.begin(ctx, newID("purge"), "purge", f, result.Matched)
	if err != nil {
		return result, err
	}
	result.Purged, err = s.store.Purge(ctx, before(f, until))
	return result, record.end(ctx, audit.Counts{Done: result.Purged}, err)
}

func (s storeLetters) replay(ctx context.Context, plan replay.Config) (replayResult, error) {
	plan.ID, plan.Store, plan.Broker = newID("replay"), s.store, s.Broker
	if plan.Canary.Size > 0 {
		plan.Canary.Outcomes = replay.StoreOutcomes{Claims: s.Claims, Letters: s.store}
	}
	if plan.DryRun {
		r, err := replay.New(plan)
		if err != nil {
			return replayResult{}, err
		}
		report, err := r.Run(ctx)
		return replayResult{Report: report}, err
	}
	planned, err := s.store.Count(ctx, plan.Filter)
	if err != nil {
		return replayResult{}, err
	}
	record, err := s.begin(ctx, plan.ID, "replay", plan.Filter, planned)
	if err != nil {
		return replayResult{}, err
	}
	progress := plan.Progress
	plan.Progress = func(r replay.Report) {
		record.alive(ctx, countsOf(r))
		if progress != nil {
			progress(r)
		}
	}
	r, err := replay.New(plan)
	if err != nil {
		return replayResult{}, record.end(ctx, audit.Counts{}, err)
	}
	report, err := r.Run(ctx)
	return replayResult{Report: report}, record.end(ctx, countsOf(report), err)
}

// countsOf returns what the audit log keeps of a replay: what was left out counts as refused.
func countsOf(r replay.Report) audit.Counts {
	return audit.Counts{Done: r.Replayed, Failed: r.Failed, Refused: r.Refused + r.Completed}
}

// eachEntry visits matching entries, without their messages, at most limit of them (0 for all), and returns the next page's cursor.
func eachEntry(ctx context.Context, store dlq.Store, f dlq.Filter, after string, limit int, visit func(dlq.Entry) error) (string, error) {
	for seen := 0; ; {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-seen)
		}
		entries, next, err := store.List(ctx, f, after, size)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if err := visit(e); err != nil {
				return "", err
			}
		}
		seen += len(entries)
		if next == "" || seen == limit {
			return next, nil
		}
		after = next
	}
}
