package brokerdlq

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/queue"
)

// status is what a scan has decided about a letter.
type status uint8

const (
	fresh  status = iota // matches, and was not handed to anybody yet
	handed               // reserved by the scan
	kept                 // stays dead; leased until the end of the scan
	gone                 // confirmed elsewhere, or given up
)

// letter is a dead letter, with all copies of it that the scan has met.
type letter struct {
	dlq.Entry
	status status
	// matches says that the scan is after it.
	matches bool
	// mirror says that it is the copy of an entry in a store.
	mirror bool
	leases []*queue.Lease // unsettled copies
}

// entryOf reads a message from the dead-letter queue of a queue. named says that it tells which job it is; else only the broker's id does,
// and brokers have none, or give one anew, for messages of others. mirror says that it is the copy of an entry in a store.
func entryOf(l *queue.Lease, from string) (e dlq.Entry, named, mirror bool) {
	message, meta, err := original(l.Message)
	e = dlq.Entry{State: dlq.StateDead, Queue: from, Job: from + ":" + cmp.Or(l.ID, rand.Text()), EnqueuedAt: l.EnqueuedAt, Group: l.Group, Message: message}
	env, envErr := message.Envelope()
	if envErr == nil {
		e.Job, e.Run, e.Kind, e.Key, e.Destination, e.EnqueuedAt = env.ID, env.Run, env.Kind, env.Key, env.Destination, env.EnqueuedAt
	}
	if meta != nil && l.Moved == "" {
		mirror = meta.Mirror
		meta.into(&e)
	} else {
		e.Cause, e.StoredAt, e.ChangedAt = dlq.CauseBroker, l.EnqueuedAt, l.EnqueuedAt
		e.Error = "moved by the broker itself, after too many deliveries: nothing else is known"
		if l.Moved != "" {
			e.Error = fmt.Sprintf("moved by the broker itself (%s): nothing else is known", l.Moved)
		}
		if err != nil {
			e.Error = fmt.Sprintf("metadata unknown: %v", err)
		}
	}
	e.ID, e.Replays = dlq.EntryID(e.Job, e.Run), e.Run
	e.Error = truncate.Text(e.Error, dlq.MaxError)
	e.Fingerprint = cmp.Or(e.Fingerprint, dlq.FingerprintError(e.Error))
	return e, envErr == nil || meta != nil && l.Moved == "", mirror
}

// into puts what m knows into e.
func (m *metadata) into(e *dlq.Entry) {
	if m.Run != nil {
		e.Job, e.Run = m.Job, *m.Run
	}
	e.Queue = cmp.Or(m.Queue, e.Queue)
	e.Kind, e.Key, e.Destination = cmp.Or(m.Kind, e.Kind), cmp.Or(m.Key, e.Key), cmp.Or(m.Destination, e.Destination)
	e.Group = m.Group // the lease's is the dead letter's own
	if !m.EnqueuedAt.IsZero() {
		e.EnqueuedAt = m.EnqueuedAt
	}
	e.Cause, e.Error, e.Fingerprint, e.Attempts, e.AttemptCount = m.Cause, m.Error, m.Fingerprint, m.Attempts, m.AttemptCount
	e.FirstFailedAt, e.LastFailedAt, e.StoredAt, e.ChangedAt = m.FirstFailed, m.LastFailed, m.StoredAt, m.StoredAt
	if !slices.Contains(dlq.Causes(), e.Cause) {
		e.Cause = dlq.CauseBroker // causes are bounded, headers are anybody's
	}
	if m.Cut >= levelCause {
		e.Error = "left out: the message had no room for it"
	}
}
