package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/caisson-go/caisson/idempotency"
	"github.com/caisson-go/caisson/idempotency/internal/record"
)

// id names a row. It has a fixed length however long the key is; the full bytes lie in the row and are compared.
type id [16]byte

// prefix is the part of an id that all keys of one value share, whatever their scope, and all runs of one job.
type prefix [10]byte

func (i id) prefix() prefix { return prefix(i[:10]) }

// first and last bound the ids of a prefix.
func (p prefix) first() (i id) {
	copy(i[:], p[:])
	return i
}

func (p prefix) last() (i id) {
	i = id{10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff}
	copy(i[:], p[:])
	return i
}

// name is what an operation is about: a key and a run, and where their rows are found.
type name struct {
	key   idempotency.Key
	run   record.RunID
	keyID id     // of the key's row
	runID id     // of the run's row, if it has one of its own
	job   prefix // of rows whose value is the job's id: they may hold its ledger
}

// digest derives ids from a value. Tests replace it to make collisions.
var digest = func(value string) id { return valueID(value) }

func nameOf(key idempotency.Key, job string, run int) name {
	n := name{key: key, run: record.RunID{Job: job, Run: run}}
	value := digest(key.Value)
	n.keyID = value.with(scopeSum(key.Scope))
	if job != key.Value {
		value = digest(job)
	}
	n.job = value.prefix()
	n.runID = value.with(uint64(run)) //nolint:gosec // never negative
	return n
}

// inline says that the ledger of a fresh run lies in the key's row.
func (n *name) inline() bool { return n.run.Job == n.key.Value }

// with returns the id with the low 48 bits of x mixed into its end.
func (i id) with(x uint64) id {
	var mix [8]byte
	binary.BigEndian.PutUint64(mix[:], x)
	for k := range 6 {
		i[10+k] ^= mix[2+k]
	}
	return i
}

// valueID begins with the time of a UUIDv7, so that the rows of one hour lie together in the index. The rest, and all of any other value's,
// is a SHA-256.
func valueID(value string) (i id) {
	sum := sha256.Sum256([]byte(value))
	if ms, ok := uuidTime(value); ok {
		copy(i[:6], ms[:])
		copy(i[6:], sum[:])
		return i
	}
	copy(i[:], sum[:])
	return i
}

// uuidTime returns the leading 48 bits of a UUIDv7 in its usual form.
func uuidTime(value string) (ms [6]byte, ok bool) {
	if len(value) != 36 || value[8] != '-' || value[13] != '-' || value[14] != '7' || value[18] != '-' || value[23] != '-' {
		return ms, false
	}
	var digits [12]byte
	copy(digits[:], value[:8])
	copy(digits[8:], value[9:13])
	_, err := hex.Decode(ms[:], digits[:])
	return ms, err == nil
}

// scopeSum is FNV-1a: scopes are few and not an attacker's choice.
func scopeSum(scope string) uint64 {
	sum := uint64(14695981039346656037)
	for k := range len(scope) {
		sum = (sum ^ uint64(scope[k])) * 1099511628211
	}
	return sum ^ sum>>48
}
