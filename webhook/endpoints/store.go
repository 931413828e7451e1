package endpoints

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// Errors of stores and registries. An endpoint that is not there is [webhook.ErrUnknownEndpoint].
var (
	// ErrExists means that an endpoint of that id is there already.
	ErrExists = errors.New("webhook endpoint exists")
	// ErrConflict means that the endpoint has changed since it was read: read it again and repeat the change.
	ErrConflict = errors.New("webhook endpoint was changed meanwhile")
	// ErrSecretInUse means that another endpoint signs with the same secret: one receiver could forge for the other.
	ErrSecretInUse = errors.New("webhook endpoint secret is used by another endpoint")
	// ErrUnavailable means that the store could not be asked. The call may be repeated.
	ErrUnavailable = errors.New("webhook endpoint store is unavailable")
)

// Record is an endpoint as stores keep it: they can list and find it, and cannot read what is secret of it.
type Record struct {
	ID     string
	Tenant string
	State  webhook.State
	Reason string
	// Since is when the state was set, by the registry's clock.
	Since time.Time
	// Settings are the fields that are not secret, as JSON.
	Settings []byte
	// Sealed are the secret ones, encrypted.
	Sealed []byte
	// Key names the key of the [Keyring] that sealed them.
	Key string
	// Fingerprints tell its secrets apart from those of other endpoints. Stores take them and do not return them.
	Fingerprints [][]byte
	// Created and Updated are by the store's clock; the store sets them.
	Created, Updated time.Time
	// Revision numbers the changes of the whole registry, in the order in which they became visible. The store sets it; it is above 0.
	Revision int64
	// Deleted says that only id, tenant and revision are left, so that mirrors hear of it.
	Deleted bool
}

// Filter selects records. Empty fields select all.
type Filter struct {
	Tenant string
	State  webhook.State
	// NotKey selects what is sealed with another key than this.
	NotKey string
}

// TombstoneAge is how long a mirror that cannot reach the store still hears of what was deleted.
const TombstoneAge = 7 * 24 * time.Hour

// Store keeps records and the health of endpoints. Package internal/testkit/endpointtest holds the suite that every store passes. Implementations are safe for
// concurrent use; errors that may pass wrap [ErrUnavailable].
type Store interface {
	// Insert adds a record and returns it as kept; [ErrExists] if there is one of its id, [ErrSecretInUse] if another one has one of
	// its fingerprints. A deleted one does not count.
	Insert(ctx context.Context, r Record) (Record, error)
	// Update replaces the record of that id whose revision is r.Revision and returns it as kept: Created stays. [webhook.ErrUnknownEndpoint]
	// if there is none, [ErrConflict] if the revision is another, [ErrSecretInUse] as Insert.
	Update(ctx context.Context, r Record) (Record, error)
	// Delete leaves a tombstone, frees the fingerprints and drops the health. Errors as Update. Tombstones older than [TombstoneAge] may be
	// removed.
	Delete(ctx context.Context, id string, revision int64) error
	// Get returns one record, or [webhook.ErrUnknownEndpoint].
	Get(ctx context.Context, id string) (Record, error)
	// List returns at most limit records that are not deleted, by id, those after the id given.
	List(ctx context.Context, f Filter, after string, limit int) ([]Record, error)
	// Changes returns at most limit records, deleted ones too, whose revision is above since, by revision. What became visible after a call
	// has a higher revision than all that the call returned. From 0 it returns the whole registry.
	Changes(ctx context.Context, since int64, limit int) ([]Record, error)
	// Report adds what was seen to the health of endpoints, as [Health.Add] does, and returns it, for those that exist. A success ends the
	// failures before it, whoever saw it.
	Report(ctx context.Context, deltas []Delta) ([]Health, error)
	// Health returns the health of one endpoint; the zero one, with the id, if nothing was reported.
	Health(ctx context.Context, id string) (Health, error)
	// Failing returns the health of those of the endpoints that have failures now, in no order.
	Failing(ctx context.Context, ids []string) ([]Health, error)
	// Recovered forgets the failures of an endpoint up to now: it was enabled. For one that does not exist it does nothing.
	Recovered(ctx context.Context, id string) error
}
