package queue

import "time"

// HeaderEnvelope is the one message header that Caisson owns. Its value is the JSON form of an [Envelope]; the
// message's body is the job's payload, untouched.
const HeaderEnvelope = "caisson"

// wireVersion is the version of the wire format that this package writes.
const wireVersion = 1

// Envelope is a job's metadata on the wire. docs/wire-format.md specifies it for other languages.
type Envelope struct {
	// ID names the job. It stays the same over retries, hops and replays. Required; 1 to 200 bytes of printable ASCII.
	ID string
	// Kind is the job's type name. Required; 1 to 200 bytes of printable ASCII without spaces.
	Kind string
	// Version is the version of the kind's payload, kind_version on the wire. Zero means unversioned.
	Version int
	// Key is the idempotency key, at most 1000 bytes of UTF-8. Empty means the job's ID.
	Key string
	// Destination is what breakers and limits isolate by. At most 1000 bytes of UTF-8.
	// Empty means that the kind derives it or has none.
	Destination string
	// EnqueuedAt is when the producer made the job. Required. Years of all times are 1970 to 9999.
	EnqueuedAt time.Time
	// NotBefore is the earliest time to run. Zero means at once. It outlives brokers whose longest delay is shorter.
	NotBefore time.Time
	// Deadline is when the job stops being worth running. Zero means none.
	Deadline time.Time
	// AttemptBase is how many attempts were spent before this message was published.
	AttemptBase int
	// Run is 0 for the first life of a job and one more for each replay.
	Run int
	// Headers are the producer's, among them traceparent and tracestate. May be nil. At most 64, with names of 1 to 100
	// bytes of printable ASCII without spaces that differ in more than case, and values of UTF-8.
	Headers map[string]string
}
