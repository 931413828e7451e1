package queue

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the wire format, in bytes where they are sizes. docs/wire-format.md publishes them.
const (
	maxEnvelope   = 32 << 10
	maxID         = 200
	maxKind       = 200
	maxText       = 1000 // key and destination
	maxHeaders    = 64
	maxHeaderName = 100
	maxInt        = math.MaxInt32
	minYear       = 1970
	maxYear       = 9999
)

// EnvelopeError tells which rule of the wire format an envelope breaks. It matches [ErrBadEnvelope].
type EnvelopeError struct {
	// Field is the key on the wire, for example "enqueued_at" or "headers"; empty for the JSON text as a whole.
	Field string
	// Value is what was found there, shortened.
	Value string
	// Problem says what is wrong and what is right.
	Problem string
}

func (e *EnvelopeError) Error() string {
	if e.Field == "" {
		return ErrBadEnvelope.Error() + ": " + e.Problem + ": " + strconv.Quote(e.Value)
	}
	return ErrBadEnvelope.Error() + ": field " + strconv.Quote(e.Field) + ": " + e.Problem + ": " + strconv.Quote(e.Value)
}

// Is reports that an EnvelopeError is [ErrBadEnvelope].
func (e *EnvelopeError) Is(target error) bool { return target == ErrBadEnvelope }

// badField returns an EnvelopeError with value cut to what an error text can bear.
func badField(field, value, problem string) error {
	const most = 60
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "..."
	}
	return &EnvelopeError{Field: field, Value: value, Problem: problem}
}

// check returns the first rule that env breaks. Encoding and decoding share it.
func (env *Envelope) check() error {
	if n := len(env.ID); n == 0 || n > maxID || !printable(env.ID, ' ') {
		return badField("id", env.ID, "must be 1 to 200 printable ASCII characters")
	}
	if n := len(env.Kind); n == 0 || n > maxKind || !printable(env.Kind, '!') {
		return badField("kind", env.Kind, "must be 1 to 200 printable ASCII characters without spaces")
	}
	if err := checkText("key", env.Key); err != nil {
		return err
	}
	if err := checkText("destination", env.Destination); err != nil {
		return err
	}
	if env.EnqueuedAt.IsZero() {
		return badField("enqueued_at", "", "is required: set the time at which the producer made the job")
	}
	if err := checkTime("enqueued_at", env.EnqueuedAt); err != nil {
		return err
	}
	if err := checkTime("not_before", env.NotBefore); err != nil {
		return err
	}
	if err := checkTime("deadline", env.Deadline); err != nil {
		return err
	}
	if err := checkInt("kind_version", env.Version); err != nil {
		return err
	}
	if err := checkInt("attempt_base", env.AttemptBase); err != nil {
		return err
	}
	if err := checkInt("run", env.Run); err != nil {
		return err
	}
	return checkHeaders(env.Headers)
}

// printable reports that s holds only ASCII from lowest to the tilde.
func printable(s string, lowest byte) bool {
	for i := range len(s) {
		if s[i] < lowest || s[i] > '~' {
			return false
		}
	}
	return true
}

func checkText(field, s string) error {
	if len(s) > maxText {
		return badField(field, s, "must be at most 1000 bytes: use a hash of a longer value")
	}
	if !utf8.ValidString(s) {
		return badField(field, s, "must be valid UTF-8: encode other bytes, for example as base64")
	}
	return nil
}

func checkTime(field string, t time.Time) error {
	if t.IsZero() {
		return nil
	}
	if y := t.UTC().Year(); y < minYear || y > maxYear {
		return badField(field, strconv.Itoa(y), "the year must be 1970 to 9999; leave the field out for no time")
	}
	return nil
}

func checkInt(field string, n int) error {
	if n < 0 || n > maxInt {
		return badField(field, strconv.Itoa(n), "must be 0 to 2147483647")
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return badField("headers", strconv.Itoa(len(headers))+" headers", "must be at most 64: move the rest to the payload")
	}
	names := make([]string, 0, 8)
	for name, value := range headers {
		if n := len(name); n == 0 || n > maxHeaderName || !printable(name, '!') {
			return badField("headers", name, "a name must be 1 to 100 printable ASCII characters without spaces")
		}
		if !utf8.ValidString(value) {
			return badField("headers", name, "the value of this header must be valid UTF-8: encode other bytes, for example as base64")
		}
		for _, other := range names {
			if len(other) == len(name) && strings.EqualFold(other, name) {
				return badField("headers", name, "two names differ only in case: keep one")
			}
		}
		names = append(names, name)
	}
	return nil
}
