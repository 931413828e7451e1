package idempotency

import (
	"context"
	"slices"
	"time"
)

// Finder is implemented by stores in which people can look for a job.
type Finder interface {
	// Find returns what is known of text as the value of a key, in any scope, and as the id of a job: at most [MaxFound] records, those of keys
	// first. The ledger of a run that no longer holds a key, or shares it with another job, comes as a record with an empty Key. Nothing known is
	// no error.
	Find(ctx context.Context, text string) (Found, error)
}

// Found is what a Find came to.
type Found struct {
	Records []Record
	// More says that there are more than MaxFound.
	More bool
	// Now is the store's clock, which the times of the records are by.
	Now time.Time
}

// Add appends the ledgers of runs to records of keys, for stores: a ledger that has come with its key is left out, and so is what is more than
// [MaxFound].
func (f *Found) Add(runs []Record) {
	keys := f.Records
	for _, r := range runs {
		if !slices.ContainsFunc(keys, func(k Record) bool { return k.Job == r.Job && k.Run == r.Run }) {
			f.Records = append(f.Records, r)
		}
	}
	if f.More = len(f.Records) > MaxFound; f.More {
		f.Records = f.Records[:MaxFound]
	}
}
