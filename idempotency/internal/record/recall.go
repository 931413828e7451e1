package record

import (
	"context"
	"errors"

	"github.com/caisson-go/caisson/idempotency"
)

// Recall returns the records of keys that a search has found, as get, which is a store's Get, knows them. It leaves out those that have
// expired since.
func Recall(
	ctx context.Context, get func(context.Context, idempotency.Key) (idempotency.Record, error), keys []idempotency.Key,
) (records []idempotency.Record, err error) {
	for _, k := range keys {
		r, err := get(ctx, k)
		if errors.Is(err, idempotency.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}
