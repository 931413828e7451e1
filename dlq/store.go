package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultRetention is how long an entry is kept after its last change of state.
const DefaultRetention = 14 * 24 * time.Hour

// Sink takes what was given up. It is all that a worker cannot do without; every [Store] is one.
type Sink interface {
	// Put stores entries, one error per entry: see [Store.Put].
	Put(ctx context.Context, entries []Entry) []error
}

// Store keeps entries. Implementations are safe for concurrent use.
type Store interface {
	// Put stores entries in state Dead or Held, as [Entry.ForStore] returns them, and returns one error per entry. It is safe to repeat:
	//
	//   - An existing entry stays as it is, and Put returns nil for it.
	//   - A Held entry that is put as Dead is stored anew.
	//   - A Held entry that is put as Held again loses its reservation: the job came back before its release was marked, so that the
	//     release must not remove it.
	//   - Where the id exists with another payload, the new entry gets the id [OtherEntryID], by the same rules.
	Put(ctx context.Context, entries []Entry) []error

	// Get returns one entry with its message, or [ErrNotFound].
	Get(ctx context.Context, id string) (Entry, error)

	// List returns entries without their messages, newest first by StoredAt, at most limit. after is the cursor of the
	// previous page ("" for the first), else the error wraps [ErrCursor]; next is "" on the last page.
	List(ctx context.Context, f Filter, after string, limit int) (entries []Entry, next string, err error)

	// Count returns how many entries match.
	Count(ctx context.Context, f Filter) (int, error)

	// Groups counts matching entries by kind, destination, cause and fingerprint, largest first.
	Groups(ctx context.Context, f Filter) ([]Group, error)

	// Depth counts dead entries by queue and cause, and held ones by destination, for metrics. It is cheap enough to call every
	// few seconds.
	Depth(ctx context.Context) (Depth, error)

	// Reserve gives up to r.Limit matching entries, oldest first, with their messages, to r.Owner for r.For. Only Dead and Held entries
	// can be reserved. Reserved entries are skipped, the owner's own too: a caller that asks again gets the next ones.
	Reserve(ctx context.Context, f Filter, r Reservation) ([]Entry, error)

	// Resolve ends reservations: each entry takes the state given, if the owner still holds it ([ErrNotReserved] if not). A
	// reservation that ran out and that nobody else took is still held.
	Resolve(ctx context.Context, owner string, rs []Resolution) []error

	// Purge marks matching entries as Purged, drops their messages and returns how many. Reserved entries are skipped: they are being
	// published.
	Purge(ctx context.Context, f Filter) (int, error)

	// Expire deletes at most limit entries that have not changed for retention, and returns how many. Held and reserved entries stay.
	Expire(ctx context.Context, retention time.Duration, limit int) (int, error)
}

// Reservation asks for entries.
type Reservation struct {
	// Owner is who reserves, such as a replay's id.
	Owner string
	// For is how long nobody else gets the entries.
	For time.Duration
	// Limit is the most entries to return; at least 1.
	Limit int
	// MaxBytes is the most bytes of bodies to return; one entry is returned even if it is larger. Zero means no limit.
	MaxBytes int
}

// Validate returns an error if r cannot be asked.
func (r Reservation) Validate() error {
	if r.Owner == "" || r.For <= 0 || r.Limit < 1 {
		return fmt.Errorf("reserve dead letters: owner %q, for %v, limit %d: all must be set", r.Owner, r.For, r.Limit)
	}
	return nil
}

// Resolution is the end of one reservation.
type Resolution struct {
	ID string
	// To is Replayed for a Dead entry that was published, or the entry's own state, Dead or Held, to give it back. Empty
	// removes a Held entry that was released. Anything else is an error.
	To State
}

// Group counts entries that died of the same thing.
type Group struct {
	Kind        string    `json:"kind"`
	Destination string    `json:"destination,omitempty"`
	Cause       Cause     `json:"cause"`
	Fingerprint string    `json:"fingerprint"`
	Count       int       `json:"count"`
	FirstAt     time.Time `json:"first_at"`
	LastAt      time.Time `json:"last_at"`
	// Sample is one of the errors.
	Sample string `json:"sample"`
}

// Depth is the size of the store as metrics show it.
type Depth struct {
	Dead []DeadDepth
	Held []HeldDepth
}

// DeadDepth counts the dead entries of one queue and cause.
type DeadDepth struct {
	Queue string
	Cause Cause
	Count int
}

// HeldDepth counts the held entries of one destination.
type HeldDepth struct {
	Destination string
	Count       int
	// Oldest is the StoredAt of the oldest.
	Oldest time.Time
}

// Errors that stores return, usually wrapped. Match them with errors.Is.
var (
	// ErrNotFound means that there is no entry with that id.
	ErrNotFound = errors.New("dead letter not found")
	// ErrNotReserved means that the owner no longer holds the entry: its time ran out or the entry changed.
	ErrNotReserved = errors.New("dead letter no longer reserved by this owner")
	// ErrUnavailable means that the store cannot answer for now. The call may be repeated.
	ErrUnavailable = errors.New("dead-letter store unavailable")
	// ErrCursor means that the cursor given to List or Audits is not one that a page returned.
	ErrCursor = errors.New("no cursor of a page before")
)
