package queue

import (
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// NewMessage returns the message that carries env and payload. The payload is not copied or changed. It returns
// [ErrBadEnvelope] when env breaks a rule of the wire format.
func NewMessage(env Envelope, payload []byte) (Message, error) {
	header, err := env.Encode()
	if err != nil {
		return Message{}, err
	}
	return Message{Body: payload, Headers: map[string]string{HeaderEnvelope: header}}, nil
}

// Envelope reads the envelope of m. It returns [ErrNoEnvelope] when the header is absent and [ErrBadEnvelope] when it
// cannot be read one single way.
func (m Message) Envelope() (Envelope, error) {
	header, ok := m.Headers[HeaderEnvelope]
	if !ok {
		return Envelope{}, ErrNoEnvelope
	}
	return DecodeEnvelope(header)
}

// Encode returns the value of [HeaderEnvelope] for env: printable ASCII, keys in a fixed order, header names
// sorted, zero fields left out. Equal envelopes encode equally. It returns [ErrBadEnvelope], with an [*EnvelopeError]
// that names the field, when env breaks a rule of the wire format.
func (env Envelope) Encode() (string, error) {
	if err := env.check(); err != nil {
		return "", err
	}
	b := make([]byte, 0, 512) // stays on the stack while it suffices
	b = append(b, `{"v":1,"id":`...)
	b = appendJSONString(b, env.ID)
	b = append(b, `,"kind":`...)
	b = appendJSONString(b, env.Kind)
	b = appendInt(b, `,"kind_version":`, env.Version)
	b = appendText(b, `,"key":`, env.Key)
	b = appendText(b, `,"destination":`, env.Destination)
	b = appendTime(b, `,"enqueued_at":"`, env.EnqueuedAt)
	b = appendTime(b, `,"not_before":"`, env.NotBefore)
	b = appendTime(b, `,"deadline":"`, env.Deadline)
	b = appendInt(b, `,"attempt_base":`, env.AttemptBase)
	b = appendInt(b, `,"run":`, env.Run)
	b = appendHeaders(b, env.Headers)
	b = append(b, '}')
	if len(b) > maxEnvelope {
		return "", badField("", strconv.Itoa(len(b))+" bytes", "the envelope is longer than 32 KiB: shorten its headers or move them to the payload")
	}
	return string(b), nil
}

func appendText(b []byte, name, s string) []byte {
	if s == "" {
		return b
	}
	return appendJSONString(append(b, name...), s)
}

func appendInt(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, name...), int64(n), 10)
}

func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return append(t.UTC().AppendFormat(append(b, name...), time.RFC3339Nano), '"')
}

func appendHeaders(b []byte, headers map[string]string) []byte {
	if len(headers) == 0 {
		return b
	}
	names := make([]string, 0, 8)
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, `,"headers":{`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(b, name)
		b = append(b, ':')
		b = appendJSONString(b, headers[name])
	}
	return append(b, '}')
}

// appendJSONString appends s, which is valid UTF-8, as a JSON string of printable ASCII: some brokers carry nothing
// else in headers.
func appendJSONString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	unit := func(r rune) {
		b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	b = append(b, '"')
	start := 0 // of what needs no escape
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case r > 0xffff:
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		default:
			unit(r)
		}
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
