package queuetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// memSub is a subscription of memBroker.
type memSub struct {
	b     *memBroker
	queue string
	lease time.Duration
	slots int
	close sync.Once
	done  chan struct{}
	held  map[*memHandle]bool // guarded by the store's mu
}

func (b *memBroker) Subscribe(_ context.Context, name string, cfg queue.SubscribeConfig) (queue.Subscription, error) {
	b.memStore.mu.Lock()
	defer b.memStore.mu.Unlock()
	if err := b.check(name); err != nil {
		return nil, err
	}
	if cfg.Lease > memCapabilities(b.fifo).MaxLease && !b.faults.takesAnyLease {
		return nil, errors.New("lease too long")
	}
	if cfg.Lease == 0 {
		cfg.Lease = queue.DefaultLease
	}
	return &memSub{
		b: b, queue: name, lease: cfg.Lease, slots: max(1, cfg.Slots), done: make(chan struct{}), held: map[*memHandle]bool{},
	}, nil
}

func (s *memSub) Close() error {
	s.close.Do(func() { close(s.done) })
	return nil
}

func (s *memSub) closedErr() error {
	select {
	case <-s.done:
		return queue.ErrClosed
	case <-s.b.done:
		return queue.ErrClosed
	default:
		return nil
	}
}

// Healthy is also about the connection.
func (s *memSub) Healthy() error {
	if err := s.closedErr(); err != nil {
		return err
	}
	s.b.memStore.mu.Lock()
	defer s.b.memStore.mu.Unlock()
	if s.b.isDown() || s.b.session > 0 && s.b.faults.staysUnhealthy {
		return queue.ErrUnavailable
	}
	return nil
}

func (s *memSub) Receive(ctx context.Context, most int) ([]*queue.Lease, error) {
	unblock := [2]chan struct{}{s.done, s.b.done}
	for {
		if err := s.closedErr(); err != nil {
			return nil, err
		}
		if s.b.faults.closeDoesNotUnblock {
			unblock = [2]chan struct{}{}
		}
		s.b.memStore.mu.Lock()
		leases, next := s.take(most)
		changed := s.b.changed
		s.b.memStore.mu.Unlock()
		if err := ctx.Err(); len(leases) > 0 && err != nil && s.b.faults.losesOnCancel {
			return nil, err
		}
		if len(leases) > 0 {
			return leases, nil
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-unblock[0]:
		case <-unblock[1]:
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take leases up to most visible messages, and tells when to look again.
func (s *memSub) take(most int) (leases []*queue.Lease, next time.Duration) {
	now, f := time.Now(), s.b.faults
	next = time.Hour
	if s.b.isDown() || s.b.session > 0 && f.deafAfterCut {
		return nil, 10 * time.Millisecond
	}
	for h := range s.held {
		if h.m.generation != h.generation || !h.m.leased || !h.m.visible.After(now) {
			delete(s.held, h)
		}
	}
	msgs := s.b.queues[s.queue]
	slices.SortStableFunc(msgs, func(a, b *memMessage) int {
		if c := a.visible.Compare(b.visible); c != 0 {
			return c
		}
		return a.order - b.order
	})
	if f.reverses {
		msgs = slices.Clone(msgs)
		slices.Reverse(msgs)
	}
	blocked := func(*memMessage) bool { return false }
	if s.b.fifo {
		msgs, blocked = s.b.inGroups(msgs, now)
	}
	for _, m := range msgs {
		if blocked(m) {
			if wait := m.visible.Sub(now); wait > 0 {
				next = min(next, wait)
			}
			continue
		}
		wait := m.visible.Sub(now)
		free := len(s.held) < s.slots || f.ignoresSlots
		stolen := f.sharesLeases && m.leased && m.deliveries == 1
		switch {
		case wait > 0 && !stolen:
			next = min(next, wait)
		case len(leases) < most && free:
			leases = append(leases, s.lend(m, now))
		}
	}
	return leases, next
}

func (s *memSub) lend(m *memMessage, now time.Time) *queue.Lease {
	f := s.b.faults
	m.leased, m.visible = true, now.Add(s.lease)
	m.generation++
	s.b.tags++
	m.tag = s.b.tags
	m.deliveries++
	m.attempts++
	deadline := m.visible
	switch {
	case f.expiresEarly:
		m.visible = now.Add(s.lease / 2)
	case f.neverExpires:
		m.visible = now.Add(1000 * time.Hour)
	}
	h := &memHandle{s: s, m: m, generation: m.generation, session: s.b.session, tag: m.tag}
	s.held[h] = true
	l := queue.NewLease(queue.Message{Body: m.Body, Headers: maps.Clone(m.Headers)}, h, deadline)
	l.Queue, l.ID, l.DeliveryCount, l.Attempts, l.EnqueuedAt = s.queue, m.id, m.deliveries, m.attempts, m.enqueued
	l.Ceiling = now.Add(memCapabilities(false).MaxLease)
	if f.noCeiling {
		l.Ceiling = time.Time{}
	}
	if f.ceilingTooLate {
		l.Ceiling = l.Ceiling.Add(time.Hour)
	}
	if s.b.fifo {
		l.Attempts = 0
	}
	if s.b.fifo && !f.hidesGroup || f.showsGroup {
		l.Group = m.group
	}
	if f.deliveriesStay {
		l.DeliveryCount = 1
	}
	return l
}

// memHandle settles one lease.
type memHandle struct {
	s          *memSub
	m          *memMessage
	generation int
	session    int
	tag        int
}

func (h *memHandle) check() error {
	if h.s.b.isDown() {
		return queue.ErrUnavailable
	}
	if stale := h.m.generation != h.generation || !h.m.leased; stale && !h.s.b.faults.unfenced {
		return queue.ErrLeaseLost
	}
	return nil
}

func (h *memHandle) Extend(_ context.Context, d time.Duration) error {
	s := h.s.b.memStore
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := h.check(); err != nil {
		return err
	}
	if !s.faults.ignoresExtend {
		h.m.visible = time.Now().Add(d)
	}
	if s.faults.extendCharges {
		h.m.attempts++
	}
	s.change()
	return nil
}

func (h *memHandle) Settle(_ context.Context, set queue.Settlement) error {
	s := h.s.b.memStore
	s.mu.Lock()
	defer s.mu.Unlock()
	h.acrossCut()
	if h.session < s.session && s.faults.saysYesAfterCut {
		return nil
	}
	if err := h.check(); err != nil {
		return err
	}
	f, m := s.faults, h.m
	if set.Delay > memCapabilities(false).MaxRetryDelay && !f.cutsDelay {
		return queue.ErrDelayTooLong
	}
	if f.settlesNothing {
		return nil
	}
	delete(h.s.held, h)
	m.leased = false
	if set.Uncharged && !f.alwaysCharges || f.neverCharges {
		m.attempts--
	}
	m.visible = time.Now()
	switch {
	case set.Action == queue.ActionRetry && !f.ignoresRetryDelay:
		m.visible = m.visible.Add(set.Delay)
	case set.Action == queue.ActionRelease && f.releasesLate:
		m.visible = m.visible.Add(h.s.lease)
	case set.Action == queue.ActionAck && !f.redeliversAcked:
		s.queues[h.s.queue] = slices.DeleteFunc(s.queues[h.s.queue], func(other *memMessage) bool { return other == m })
	}
	if f.forgetsAcked && set.Action == queue.ActionAck {
		clear(s.dedup)
	}
	if f.losesRetried && set.Action == queue.ActionRetry {
		s.queues[h.s.queue] = slices.DeleteFunc(s.queues[h.s.queue], func(other *memMessage) bool { return other == m })
	}
	s.change()
	return nil
}
