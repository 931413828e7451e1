package brokerdlq

import (
	"context"
	"fmt"

	"github.com/caisson-go/caisson/dlq"
)

// ImportReport tells what an import did.
type ImportReport struct {
	// Imported dead letters are in the store, and no longer in the broker.
	Imported int `json:"imported"`
	// Failed ones were not stored. They stay in the broker.
	Failed int `json:"failed"`
	// Mirrored are copies of entries that are dead in the store. They stay in the broker.
	Mirrored int `json:"mirrored,omitempty"`
	// Restored are copies whose entries the store had lost. They are in the store now, and stay in the broker as copies.
	Restored int `json:"restored,omitempty"`
	// Outdated are copies that were removed: their entries were replayed or purged, or are no longer remembered.
	Outdated int `json:"outdated,omitempty"`
	ScanReport
}

// Import moves the dead letters that match f to a store: it puts them, then removes them. It is safe to repeat: entries that the store has
// stay as they are. Copies of a [Mirror] of that store stay while their entry is dead; [Config.Retention] tells what becomes of copies that
// the store does not know. The report holds for an error as well.
func (q *Queues) Import(ctx context.Context, store dlq.Store, f dlq.Filter) (report ImportReport, err error) {
	report.ScanReport, err = q.each(ctx, f, func(ctx context.Context, s *scan, chunk []*letter) error {
		var own, copies []*letter
		for _, l := range chunk {
			if l.mirror {
				copies = append(copies, l)
			} else {
				own = append(own, l)
			}
		}
		if err := report.move(ctx, store, s, own); err != nil {
			return err
		}
		return report.tidy(ctx, store, s, copies)
	})
	return report, err
}

// move puts letters into the store, then removes them.
func (r *ImportReport) move(ctx context.Context, store dlq.Sink, s *scan, letters []*letter) error {
	if len(letters) == 0 {
		return nil
	}
	var stored []*letter
	var failed error
	for i, err := range store.Put(ctx, entries(letters)) {
		if err == nil {
			stored = append(stored, letters[i])
			continue
		}
		r.Failed++
		letters[i].status = kept
		failed = fmt.Errorf("import %s: %w", letters[i].ID, err)
	}
	for _, err := range s.remove(ctx, stored) {
		if err == nil {
			r.Imported++
			continue
		}
		failed = fmt.Errorf("stored, but still in the broker: %w", err)
	}
	return failed
}

// tidy removes the copies whose entries are no longer dead, and stores those that the store has lost.
func (r *ImportReport) tidy(ctx context.Context, store dlq.Store, s *scan, copies []*letter) error {
	states, err := statesOf(ctx, store, copies)
	if err != nil {
		for _, l := range copies {
			l.status = kept
		}
		return err
	}
	var outdated, lost []*letter
	young := s.cfg.Now().Add(-s.cfg.Retention / 2) // half, since clocks differ: what has just expired must not come back
	for _, l := range copies {
		ids := idsOf(l)
		one, other := states[ids[0]], states[ids[1]]
		switch {
		case one == dlq.StateDead || other == dlq.StateDead:
			l.status = kept
			r.Mirrored++
		case one == "" && other == "" && l.StoredAt.After(young):
			l.status = kept
			lost = append(lost, l)
		default:
			outdated = append(outdated, l)
		}
	}
	if err := r.restore(ctx, store, lost); err != nil {
		return err
	}
	for _, err := range s.remove(ctx, outdated) {
		if err != nil {
			return fmt.Errorf("remove a copy: %w", err)
		}
		r.Outdated++
	}
	return nil
}

// idsOf returns the ids that the entry of a letter may have in a store.
func idsOf(l *letter) [2]string {
	return [2]string{dlq.EntryID(l.Job, l.Run), dlq.OtherEntryID(l.Job, l.Run, l.Message.Body)}
}

// restore puts letters into the store. They stay in the broker.
func (r *ImportReport) restore(ctx context.Context, store dlq.Sink, letters []*letter) error {
	if len(letters) == 0 {
		return nil
	}
	var failed error
	for i, err := range store.Put(ctx, entries(letters)) {
		if err != nil {
			failed = fmt.Errorf("import %s: %w", letters[i].ID, err)
			continue
		}
		r.Restored++
	}
	return failed
}

// statesOf asks in which states the store has the entries of letters.
func statesOf(ctx context.Context, store dlq.Store, letters []*letter) (map[string]dlq.State, error) {
	states := map[string]dlq.State{}
	if len(letters) == 0 {
		return states, nil
	}
	f := dlq.Filter{States: dlq.States()}
	for _, l := range letters {
		ids := idsOf(l)
		f.IDs = append(f.IDs, ids[:]...)
	}
	for after := ""; ; {
		list, next, err := store.List(ctx, f, after, len(f.IDs))
		if err != nil {
			return nil, fmt.Errorf("look up the entries of copies: %w", err)
		}
		for _, e := range list {
			states[e.ID] = e.State
		}
		if next == "" {
			return states, nil
		}
		after = next
	}
}
