package idempotency

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Request asks for the claim of a key on behalf of one run of one job.
type Request struct {
	Key Key
	// Job and Run name the ledger entry that is charged.
	Job string
	Run int
	// AttemptBase is what the ledger entry starts from if it does not exist yet.
	AttemptBase int
	// Fingerprint of the payload.
	Fingerprint Fingerprint
	// Owner names the asking process, for people who look at a stuck claim. At most 200 bytes.
	Owner string
	// Lease is how long the claim lasts unless extended. Must be positive.
	Lease time.Duration
}

// Validate returns an error if no store can answer r. Stores put it into [Claim.Err].
func (r Request) Validate() error {
	switch {
	case r.Job == "":
		return errors.New("idempotency: request without a job: set Job to the job's id")
	case r.Run < 0 || r.AttemptBase < 0:
		return fmt.Errorf("idempotency: run %d and attempt base %d of job %q must not be negative", r.Run, r.AttemptBase, r.Job)
	case r.Lease <= 0:
		return fmt.Errorf("idempotency: lease %v of job %q must be positive", r.Lease, r.Job)
	case len(r.Owner) > MaxOwner:
		return fmt.Errorf("idempotency: owner of %d bytes exceeds %d bytes", len(r.Owner), MaxOwner)
	}
	return nil
}

// Status is the answer to a claim.
type Status uint8

// The answers. Where several would be true, the first of Completed, Closed, Conflict, Busy, StatusNotDue is given; Acquired only where
// none is.
const (
	// StatusAcquired: the caller holds the claim and the attempt is charged.
	StatusAcquired Status = iota + 1
	// StatusBusy: another delivery holds the claim until Claim.Until. Nothing was charged.
	StatusBusy
	// StatusNotDue: the ledger says that this run must not be tried before Claim.Until. Nothing was charged.
	StatusNotDue
	// StatusCompleted: the work is done; Claim.Result is what the handler left.
	StatusCompleted
	// StatusConflict: the key belongs to another payload: it is completed, claimed, or between the attempts of a run that is not
	// given up. A lease that ran out changes nothing here: that run is still unfinished.
	StatusConflict
	// StatusClosed: this very run was given up before (it is a dead letter, or was replayed). Ack the delivery.
	StatusClosed
)

// String returns the status in lower case.
func (s Status) String() string {
	names := [...]string{"invalid", "acquired", "busy", "not_due", "completed", "conflict", "closed"}
	if int(s) < len(names) {
		return names[s]
	}
	return names[0]
}

// Claim is the answer to one [Request].
type Claim struct {
	Status Status
	// Token fences the claim: it rises with each owner of the key, also over an expiry of the key's record. Only for Acquired.
	Token int64
	// Attempt is the number of the attempt just charged, counted from 1 above AttemptBase. Only for Acquired.
	Attempt int
	// Until is when the claim (Acquired, Busy) runs out or the run is due (StatusNotDue), by the store's clock.
	Until time.Time
	// Wait is Until minus the store's now: what to wait, free of clock skew. Never negative.
	Wait time.Duration
	// History holds the last [MaxHistory] failed attempts of this run so far, oldest first. Only for Acquired.
	History []Attempt
	// Result is what the completed run left. Only for Completed.
	Result Result
	// Err is set when this request could not be answered; then Status is 0. It wraps [ErrUnavailable] if it may be repeated.
	Err error
}

// Attempt is one failed attempt as the ledger remembers it.
type Attempt struct {
	Number  int       `json:"number"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	Error   string    `json:"error"`
}

// Capped returns a with its error cut to [MaxAttemptError] bytes on a rune boundary. Invalid UTF-8 is replaced.
func (a Attempt) Capped() Attempt {
	a.Error = strings.ToValidUTF8(a.Error, "\uFFFD")
	if len(a.Error) <= MaxAttemptError {
		return a
	}
	cut := MaxAttemptError
	for cut > 0 && !utf8.RuneStart(a.Error[cut]) {
		cut--
	}
	a.Error = a.Error[:cut]
	return a
}

// Handle names a claim that the caller holds.
type Handle struct {
	Key   Key
	Job   string
	Run   int
	Token int64
}

// Extension prolongs a claim.
type Extension struct {
	Handle
	// Lease counts from now by the store's clock.
	Lease time.Duration
}

// Completion closes a claim with success.
type Completion struct {
	Handle
	Result Result
	// Retention is how long the key is remembered. Zero means [DefaultRetention].
	Retention time.Duration
}

// Abandonment gives a claim back with no attempt spent: the job was not tried.
type Abandonment struct {
	Handle
	// Delay is written to the ledger as the earliest next try, counted from now. Zero means at once.
	Delay time.Duration
}

// Failure ends a claim after a failed attempt.
type Failure struct {
	Handle
	// Attempt is appended to the run's history. Its Error is cut to [MaxAttemptError] bytes on a rune boundary.
	Attempt Attempt
	// Delay is written to the ledger as the earliest next try, counted from now. Zero means at once. Ignored if Final.
	Delay time.Duration
	// Final closes the run: later claims of it answer Closed. The key itself becomes free for other runs and jobs, also with
	// another payload. Without Final the key stays bound to its payload.
	Final bool
	// Retention is how long a closed run is remembered. Zero means [DefaultRetention].
	Retention time.Duration
}

// Result is what a handler left for later deliveries of the same key.
type Result struct {
	// Data is the result itself; nil when Omitted.
	Data []byte
	// Omitted says that the result was longer than [MaxResult]: Size and SHA256 describe what was left out.
	Omitted bool
	Size    int64
	SHA256  [sha256.Size]byte
}

// NewResult returns the result to store for data: data itself up to [MaxResult] bytes, else its size and hash.
func NewResult(data []byte) Result {
	r := Result{Size: int64(len(data))}
	if len(data) > MaxResult {
		r.Omitted = true
		r.SHA256 = sha256.Sum256(data)
		return r
	}
	r.Data = data
	return r
}

// Capped returns what a store keeps of r: r itself, or its size and hash if its data is longer than [MaxResult].
func (r Result) Capped() Result {
	if len(r.Data) > MaxResult {
		return NewResult(r.Data)
	}
	return r
}
