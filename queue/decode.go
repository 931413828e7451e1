package queue

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DecodeEnvelope reads the value of [HeaderEnvelope]. It takes only what can be read one single way, whatever JSON
// library reads it: a key that comes twice, also in another case, is refused at every level. Keys that version 1 does
// not know are ignored, so that optional ones can be added. It returns [ErrBadEnvelope], with an [*EnvelopeError] that
// names the field. Strings of the result share memory with header.
func DecodeEnvelope(header string) (Envelope, error) {
	if len(header) > maxEnvelope {
		return Envelope{}, badField("", header, "the envelope is longer than 32 KiB: shorten its headers or move them to the payload")
	}
	if !utf8.ValidString(header) {
		return Envelope{}, badField("", header, "the envelope must be valid UTF-8; escape what is not ASCII as \\u")
	}
	d := envelopeDecoder{r: jsonReader{s: header}}
	if err := d.r.object("", d.field); err != nil {
		return Envelope{}, err
	}
	if err := d.r.end(); err != nil {
		return Envelope{}, err
	}
	if !d.versioned {
		return Envelope{}, badField("v", "", "is required: it must be 1")
	}
	if err := d.env.check(); err != nil {
		return Envelope{}, err
	}
	return d.env, nil
}

type envelopeDecoder struct {
	r         jsonReader
	env       Envelope
	versioned bool
}

// wireKeys are the keys of version 1.
var wireKeys = []string{
	"v", "id", "kind", "kind_version", "key", "destination", "enqueued_at", "not_before", "deadline", "attempt_base", "run", "headers",
}

// field reads the value of one key.
func (d *envelopeDecoder) field(key string) error {
	switch key {
	case "v":
		d.versioned = true
		return d.version()
	case "id":
		return d.text(key, &d.env.ID)
	case "kind":
		return d.text(key, &d.env.Kind)
	case "kind_version":
		return d.integer(key, &d.env.Version)
	case "key":
		return d.text(key, &d.env.Key)
	case "destination":
		return d.text(key, &d.env.Destination)
	case "enqueued_at":
		return d.time(key, &d.env.EnqueuedAt)
	case "not_before":
		return d.time(key, &d.env.NotBefore)
	case "deadline":
		return d.time(key, &d.env.Deadline)
	case "attempt_base":
		return d.integer(key, &d.env.AttemptBase)
	case "run":
		return d.integer(key, &d.env.Run)
	case "headers":
		return d.headers()
	}
	for _, known := range wireKeys {
		if strings.EqualFold(known, key) {
			return badField(known, key, "is spelt in another case: keys are lower case")
		}
	}
	return d.r.skip(0)
}

func (d *envelopeDecoder) version() error {
	var v int
	if err := d.integer("v", &v); err != nil {
		return err
	}
	if v != wireVersion {
		return badField("v", strconv.Itoa(v), "is a version of the wire format that this program does not know: upgrade it, or write version 1")
	}
	return nil
}

func (d *envelopeDecoder) text(field string, to *string) error {
	s, ok, err := d.r.text()
	if err == nil && !ok {
		err = badField(field, d.r.rest(), "must be a string")
	}
	*to = s
	return err
}

func (d *envelopeDecoder) integer(field string, to *int) error {
	number := d.r.number()
	if number == "" {
		return badField(field, d.r.rest(), "must be a whole number")
	}
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || number[0] == '-' { // also -0, which some parsers read as a fraction
		return badField(field, number, "must be a whole number from 0 to 2147483647, without fraction or exponent")
	}
	*to = int(n)
	return nil
}

func (d *envelopeDecoder) time(field string, to *time.Time) error {
	var s string
	if err := d.text(field, &s); err != nil {
		return err
	}
	t, ok := parseTime(s)
	if !ok {
		return badField(field, s, "must be RFC 3339 in UTC with years 1970 to 9999 and at most 9 digits of a second, such as 2026-01-02T15:04:05.123Z")
	}
	*to = t
	return nil
}

func (d *envelopeDecoder) headers() error {
	if d.r.peek() != '{' {
		return badField("headers", d.r.rest(), "must be an object of strings")
	}
	return d.r.object("headers", func(name string) error {
		value, ok, err := d.r.text()
		if err != nil {
			return err
		}
		if !ok {
			return badField("headers", name, "the value of this header must be a string")
		}
		if d.env.Headers == nil {
			d.env.Headers = make(map[string]string)
		}
		d.env.Headers[name] = value
		return nil
	})
}

// parseTime reads the one form of RFC 3339 that the wire format has.
func parseTime(s string) (time.Time, bool) {
	const whole = len("2006-01-02T15:04:05")
	if len(s) <= whole || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[len(s)-1] != 'Z' {
		return time.Time{}, false
	}
	year, month, day := digits(s[:4]), digits(s[5:7]), digits(s[8:10])
	hour, minute, second := digits(s[11:13]), digits(s[14:16]), digits(s[17:19])
	nanos := 0
	if fraction := s[whole : len(s)-1]; fraction != "" {
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 {
			return time.Time{}, false
		}
		nanos = digits(fraction[1:])
		for range 10 - len(fraction) {
			nanos *= 10
		}
	}
	if year < minYear || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
		second < 0 || second > 59 || nanos < 0 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	return t, t.Day() == day // 30 February became March
}

// digits returns the number that s spells, or -1 if s has anything but digits.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
