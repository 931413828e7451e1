package endpoints

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

const (
	// changesPage is how many records one question asks for.
	changesPage = 500
	// lookTimeout bounds one question, so that a store that hangs is told of.
	lookTimeout = 15 * time.Second
	// resyncEvery is how often the whole registry is compared: a mirror that was cut off for long may have missed what was deleted, or that the
	// store was restored from a backup. Records that are known are not decrypted again.
	resyncEvery = time.Hour
	// tellRefused is how many endpoints that cannot be used one look tells of by name.
	tellRefused = 10
)

// follow is how far Run has come.
type follow struct {
	since  int64
	synced time.Time // when the whole registry was compared last
	away   bool
	// refused counts what the present look could not use.
	refused int
}

// Run loads the registry and follows it until ctx ends; then it returns nil. An endpoint that cannot be read is logged. While the store is away
// the mirror keeps what it has. Call it once.
func (m *Mirror) Run(ctx context.Context) error {
	ticker := time.NewTicker(m.cfg.Interval)
	defer ticker.Stop()
	for {
		waiting := m.asked.begin()
		err := m.look(ctx)
		waiting.end(err)
		m.note(ctx, err)
		if waiting != nil {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(renewEvery):
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-m.asked.wake:
		}
	}
}

// note logs when the store goes away and when it is back, once each.
func (m *Mirror) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !m.follow.away:
		m.follow.away = true
		m.cfg.Logger.WarnContext(ctx, "webhook endpoints cannot be read: publishing and deliveries go on with what is known", "error", err)
	case err == nil && m.follow.away:
		m.follow.away = false
		m.cfg.Logger.InfoContext(ctx, "webhook endpoints are read again")
	}
}

// look takes over what has changed.
func (m *Mirror) look(ctx context.Context) error {
	m.follow.refused = 0
	defer func() {
		if n := m.follow.refused; n > tellRefused {
			m.cfg.Logger.ErrorContext(ctx, "webhook endpoints cannot be used by this program: more than were named", "endpoints", n)
		}
	}()
	now := time.Now()
	if m.follow.synced.IsZero() || now.Sub(m.follow.synced) >= resyncEvery {
		return m.resync(ctx, now)
	}
	// The last record is asked for again. A store that does not have it, nor a later one, or has another under its number, is one from a backup:
	// its revisions begin again lower.
	seen, empty, other := m.follow.since, true, false
	last, err := m.read(ctx, max(seen-1, 0), func(r Record) {
		empty, other = false, other || r.Revision == seen && !m.knows(r)
		m.take(ctx, r)
	})
	m.follow.since = max(seen, last)
	if err == nil && (other || empty && seen > 0) {
		return m.resync(ctx, now)
	}
	return err
}

// resync compares everything, and drops what the registry does not have any more.
func (m *Mirror) resync(ctx context.Context, now time.Time) error {
	live := make(map[string]bool)
	last, err := m.read(ctx, 0, func(r Record) {
		if !r.Deleted {
			live[r.ID] = true
		}
		m.take(ctx, r)
	})
	if err != nil {
		return err
	}
	m.follow.since, m.follow.synced = last, now
	for _, id := range m.absent(live) {
		m.drop(ctx, id)
	}
	m.mu.Lock()
	first := !m.ready
	m.ready = true
	m.mu.Unlock()
	if first {
		close(m.loaded)
	}
	return nil
}

// read hands over what is newer than a revision, page after page, and returns the last revision that it has handed over.
func (m *Mirror) read(ctx context.Context, since int64, take func(Record)) (int64, error) {
	for {
		ask, cancel := context.WithTimeout(ctx, lookTimeout)
		records, err := m.cfg.Registry.cfg.Store.Changes(ask, since, changesPage)
		cancel()
		if err != nil {
			return since, fmt.Errorf("changes of webhook endpoints: %w", err)
		}
		for _, r := range records {
			take(r)
			since = r.Revision
		}
		if len(records) < changesPage {
			return since, nil
		}
	}
}

// knows reports whether a record says nothing new.
func (m *Mirror) knows(r Record) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	old, there := m.byID[r.ID]
	if r.Deleted {
		return !there
	}
	return there && old.revision == r.Revision && old.nonce == nonce(r)
}

// take takes a record over unless it is known.
func (m *Mirror) take(ctx context.Context, r Record) {
	switch {
	case m.knows(r):
		return
	case r.Deleted:
		m.drop(ctx, r.ID)
		return
	}
	next := m.decode(r)
	if next.err != nil {
		m.refuse(ctx, r.ID, next.err)
	}
	e := next.endpoint
	m.mu.Lock()
	m.unindex(m.byID[r.ID])
	m.byID[r.ID] = next
	m.index.Add(e.ID, e.Tenant, e.Events)
	m.mu.Unlock()
	m.cfg.OnChange(e, false)
}

// decode reads a record as far as it can be read. State, tenant and patterns lie in the clear, and bind also where the rest does not open: what
// was known of it before is not used any more, since the change may have been the URL.
func (m *Mirror) decode(r Record) mirrored {
	entry, err := m.cfg.Registry.cfg.Keys.decode(r)
	if err == nil {
		var checked webhook.Endpoint
		if checked, err = m.cfg.Registry.cfg.Guard.Check(entry.Endpoint); err == nil {
			entry.Endpoint = checked
		}
	}
	return mirrored{endpoint: entry.Endpoint, revision: r.Revision, nonce: nonce(r), err: err}
}

// refuse tells of an endpoint that cannot be read. With a key missing that may be all of them.
func (m *Mirror) refuse(ctx context.Context, id string, err error) {
	m.follow.refused++
	if m.follow.refused <= tellRefused {
		m.cfg.Logger.ErrorContext(ctx, "webhook endpoint cannot be used by this program: it publishes to it all the same, and deliveries wait for a worker that can use it", "endpoint", id, "error", err)
	}
}

// drop forgets an endpoint. One of the configuration file may take its place.
func (m *Mirror) drop(ctx context.Context, id string) {
	m.mu.Lock()
	m.unindex(m.byID[id])
	delete(m.byID, id)
	m.mu.Unlock()
	if m.cfg.Static != nil {
		if e, err := m.cfg.Static.Get(ctx, id); err == nil {
			m.cfg.OnChange(e, false)
			return
		}
	}
	m.cfg.OnChange(webhook.Endpoint{ID: id}, true)
}

// unindex takes what is known of an endpoint out of the index. Nothing may be known.
func (m *Mirror) unindex(old mirrored) {
	if e := old.endpoint; e.ID != "" {
		m.index.Remove(e.ID, e.Tenant, e.Events)
	}
}

// absent returns the ids that are known and not live.
func (m *Mirror) absent(live map[string]bool) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var gone []string
	for id := range m.byID {
		if !live[id] {
			gone = append(gone, id)
		}
	}
	return gone
}
