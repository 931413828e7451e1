package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/idempotency"
)

// RunID names a ledger entry.
type RunID struct {
	Job string
	Run int
}

// Row is what is stored under a key, without the ledger. The zero time means never.
type Row struct {
	Exists  bool
	State   idempotency.Status
	Token   int64
	Payload []byte // fingerprint of the payload; nil when the key is free for any
	Holder  RunID  // the last holder
	Owner   string
	Until   time.Time
	Expires time.Time
	Result  idempotency.Result
}

// Ledger is the ledger entry of one run, wherever it is kept. The zero time means never.
type Ledger struct {
	Exists    bool
	Attempt   int
	NotBefore time.Time
	Closed    bool
	History   []idempotency.Attempt
	Expires   time.Time
}

// Record is what one operation works on: a key's row and the ledger entry of one run.
type Record struct {
	Key idempotency.Key
	ID  RunID
	Row Row
	Run Ledger
	// Inline says that Run is kept in the key's row.
	Inline bool
	// Elsewhere says that Run is kept in the row of another key, which must give it up when Run is saved.
	Elsewhere bool
	// Displaced is the ledger that lies in the key's row and is not ID's, and Holder whose it is. When ID takes the row, it must
	// be saved among the runs.
	Displaced Ledger
	Holder    RunID
}

// Change is what a method has changed.
type Change uint8

const (
	// Nothing is to be saved.
	Nothing Change = iota
	// RunOnly means that only Run is to be saved. It is not inline then.
	RunOnly
	// All means that the row, Run if it exists, and Displaced if it exists are to be saved.
	All
)

// Known returns what a store tells of a key.
func (r *Record) Known() idempotency.Record {
	rec := idempotency.Record{
		Key: r.Key, State: r.Row.State, Job: r.ID.Job, Run: r.ID.Run, Attempt: r.Run.Attempt, Closed: r.Run.Closed,
		Owner: r.Row.Owner, Token: r.Row.Token, History: r.Run.History, Result: r.Row.Result, Until: r.Run.NotBefore,
	}
	switch {
	case r.Row.State == idempotency.StatusAcquired:
		rec.Until = r.Row.Until
	case !r.Row.Expires.IsZero():
		rec.Until = r.Row.Expires
	}
	return rec
}

// EncodeHistory returns history as stores keep it: JSON, or nil if there is none.
func EncodeHistory(history []idempotency.Attempt) []byte {
	if len(history) == 0 {
		return nil
	}
	text, err := json.Marshal(history)
	if err != nil {
		return nil // a year beyond 9999 in a caller's time: the count stands without it
	}
	return text
}

// DecodeHistory is the inverse of [EncodeHistory].
func DecodeHistory(text []byte) (history []idempotency.Attempt, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &history); err != nil {
		return nil, fmt.Errorf("ledger history: %w", err)
	}
	return history, nil
}
