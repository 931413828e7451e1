package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// maxRun is the highest run, and nearly the highest attempt, that the columns hold.
const maxRun = math.MaxInt32

// request is one item of a batch of claims.
type request struct {
	idempotency.Request
	name  name
	token int64   // the token that an earlier try may have taken the claim with, or 0
	tried []int64 // those of tries before that one
	claim idempotency.Claim
}

func requestOf(q idempotency.Request) *request {
	q.Lease = max(time.Microsecond, q.Lease.Truncate(time.Microsecond)) // as the database keeps it
	return &request{Request: q, name: nameOf(q.Key, q.Job, q.Run)}
}

// Claim asks for keys and charges an attempt for each one acquired.
func (s *Store) Claim(ctx context.Context, reqs []idempotency.Request) []idempotency.Claim {
	claims := make([]idempotency.Claim, len(reqs))
	asked := make([]*request, len(reqs))
	valid := make([]item, 0, len(reqs))
	for i, q := range reqs {
		claims[i].Err = q.Validate()
		if claims[i].Err == nil {
			claims[i].Err = checkRange(q.Job, q.Run, q.AttemptBase)
		}
		if claims[i].Err == nil {
			asked[i] = requestOf(q)
			valid = append(valid, item{request: asked[i]})
		}
	}
	if len(valid) == 0 {
		return claims
	}
	err := s.lane.do(ctx, valid)
	for i, q := range asked {
		switch {
		case q == nil:
		case err != nil:
			claims[i].Err = fmt.Errorf("claim: %w", err)
		default:
			claims[i] = q.claim
		}
	}
	return claims
}

// checkRange refuses numbers that the columns cannot hold.
func checkRange(job string, run, base int) error {
	if run > maxRun || base > maxRun-1<<20 {
		return fmt.Errorf("idempotency: run %d or attempt base %d of job %q is too large", run, base, job)
	}
	return nil
}

// split returns the requests that may be answered at once: those whose ledger lies in their row, and before which no request of the
// same batch is about the same key or job.
func split(reqs []*request) (fresh, rest []*request) {
	fresh = make([]*request, 0, len(reqs))
	seen := make(map[prefix]struct{}, len(reqs))
	for _, q := range reqs {
		value := q.name.keyID.prefix()
		_, taken := seen[value]
		seen[value] = struct{}{}
		if !q.name.inline() {
			seen[q.name.job] = struct{}{}
			taken = true
		}
		if taken {
			rest = append(rest, q)
		} else {
			fresh = append(fresh, q)
		}
	}
	slices.SortFunc(fresh, func(a, b *request) int { return less(a.name.keyID, b.name.keyID) })
	return fresh, rest
}

// freshAnswer is what the statement claimFresh has answered.
type freshAnswer struct {
	now      time.Time
	token    int64
	missing  bool // not all were inserted
	inserted []id
	rowSets  map[id]*rowSet // the rows in the way, by the key that was asked for
}

// addFresh adds the claim of reqs to t.
func (t *roundTrip) addFresh(ctx context.Context, reqs []*request) (*freshAnswer, error) {
	token := t.store.clock.token()
	for _, q := range reqs {
		q.try(token)
	}
	a := &freshAnswer{rowSets: map[id]*rowSet{}}
	return a, t.add(ctx, &t.store.sql.claimFresh, freshValues(reqs, token), a.read)
}

func (a *freshAnswer) read(c [][]byte) error {
	if c[0] == nil {
		a.missing, a.inserted, a.now, a.token = c[1] != nil, readIDs(c[1]), time.UnixMicro(readInt(c[2])), readInt(c[3])
		slices.SortFunc(a.inserted, less)
		return nil
	}
	b := a.rowSets[id(c[0])]
	if b == nil {
		b = newRowSet()
		a.rowSets[id(c[0])] = b
	}
	if readInt(c[3]) == 1 {
		return b.readKey(c[4:])
	}
	return b.readRun([][]byte{c[4], c[5], c[11], c[12], c[19], c[20], c[21], c[22], c[15]})
}

// answer answers reqs, and returns those for which rows must be changed.
func (a *freshAnswer) answer(reqs []*request) (rest []*request) {
	for _, q := range reqs {
		if _, ok := slices.BinarySearchFunc(a.inserted, q.name.keyID, less); ok || !a.missing {
			q.claim = record.Acquired(a.now, q.Request, a.token, q.AttemptBase+1)
		} else if !q.peek(a.rowSets[q.name.keyID], a.now) {
			rest = append(rest, q)
		}
	}
	return rest
}

func freshValues(reqs []*request, token int64) (v values) {
	type req = *request
	uuids(&v, reqs, func(q *req) id { return (*q).name.keyID })
	uuids(&v, reqs, func(q *req) id { return (*q).name.job.first() })
	uuids(&v, reqs, func(q *req) id { return (*q).name.job.last() })
	uuids(&v, reqs, func(q *req) id { return (*q).name.runID })
	byteas(&v, reqs, func(q *req) (string, bool) { return (*q).Key.Scope, false })
	byteas(&v, reqs, func(q *req) (string, bool) { return (*q).Key.Value, false })
	byteas(&v, reqs, func(q *req) ([]byte, bool) { return (*q).Fingerprint[:], false })
	byteas(&v, reqs, func(q *req) (string, bool) { return (*q).Owner, false })
	int4s(&v, reqs, func(q *req) (int32, bool) { return int32((*q).Run), false })             //nolint:gosec // checked by checkRange
	int4s(&v, reqs, func(q *req) (int32, bool) { return int32((*q).AttemptBase) + 1, false }) //nolint:gosec // see above
	int8s(&v, reqs, pgtype.Int8OID, func(q *req) (int64, bool) { return (*q).Lease.Microseconds(), false })
	v.int8(token)
	return v
}

// peek answers q from the rows that were in the way, if the answer changes nothing.
func (q *request) peek(b *rowSet, now time.Time) bool {
	if b == nil {
		return false // somebody else inserted it meanwhile
	}
	r, err := b.record(&q.name)
	if err != nil {
		q.claim = idempotency.Claim{Err: fmt.Errorf("claim: %w", err)}
		return true
	}
	c, change := r.Claim(now, q.Request)
	if change != record.Nothing {
		return false
	}
	q.claim = c
	return true
}

// rewriteClaims answers requests whose rows must be changed, one after the other.
func (s *Store) rewriteClaims(ctx context.Context, reqs []*request) error {
	names := make([]name, len(reqs))
	for i, q := range reqs {
		names[i] = q.name
	}
	return s.repeat(ctx, func(conn *pgx.Conn, _ bool) error {
		return s.rewrite(ctx, conn, names, func(b *rowSet) {
			for _, q := range reqs {
				q.rewrite(s, b)
			}
		})
	})
}

func (q *request) rewrite(s *Store, b *rowSet) {
	r, err := b.record(&q.name)
	if err != nil {
		q.claim = idempotency.Claim{Err: fmt.Errorf("claim: %w", err)}
		return
	}
	if q.owns(r) {
		q.claim = record.Acquired(b.now, q.Request, r.Row.Token, r.Run.Attempt)
		q.claim.History = r.Run.History
		q.claim.Until, q.claim.Wait = r.Row.Until, max(0, r.Row.Until.Sub(b.now))
		return
	}
	c, change := r.Claim(b.now, q.Request)
	if c.Status == idempotency.StatusAcquired {
		c.Token = s.clock.from(c.Token) // no other request of this process gets it, so that owns can tell them apart
		r.Row.Token = c.Token
		q.try(c.Token)
	}
	q.claim = c
	b.apply(&q.name, r, change)
}

// try notes the token of one more try.
func (q *request) try(token int64) {
	if q.token != 0 {
		q.tried = append(q.tried, q.token)
	}
	q.token = token
}

// owns says that an earlier try of this very request got the claim, and that only the answer was lost. It need not be the last one: its
// commit may come after the next try has looked, and that one then meets a conflict.
func (q *request) owns(r *record.Record) bool {
	mine := r.Row.Token != 0 && (r.Row.Token == q.token || slices.Contains(q.tried, r.Row.Token))
	return mine && r.Row.State == idempotency.StatusAcquired && r.Row.Holder == q.name.run && r.Row.Owner == q.Owner
}
