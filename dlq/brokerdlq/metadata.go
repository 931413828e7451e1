package brokerdlq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/queue"
)

// HeaderDead is the header of a dead letter that holds what is known of its failure, as JSON of printable ASCII. docs/wire-format.md
// specifies it.
const HeaderDead = "caisson-dead"

// metadataVersion is the version that this package writes.
const metadataVersion = 1

// maxMetadata is the most bytes of a HeaderDead: brokers carry all headers in one frame, or count them towards a small limit.
const maxMetadata = 16 << 10

// metadata is the content of HeaderDead. What the envelope says already is left out.
type metadata struct {
	Version      int                 `json:"v"`
	Job          string              `json:"job,omitempty"`
	Run          *int                `json:"run,omitempty"`
	Queue        string              `json:"queue,omitempty"`
	State        dlq.State           `json:"state,omitempty"`
	Kind         string              `json:"kind,omitempty"`
	Key          string              `json:"key,omitempty"`
	Destination  string              `json:"destination,omitempty"`
	Group        string              `json:"group,omitempty"`
	Cause        dlq.Cause           `json:"cause"`
	Fingerprint  string              `json:"fingerprint,omitempty"`
	AttemptCount int                 `json:"attempt_count,omitempty"`
	EnqueuedAt   time.Time           `json:"enqueued_at,omitzero"`
	FirstFailed  time.Time           `json:"first_failed_at,omitzero"`
	LastFailed   time.Time           `json:"last_failed_at,omitzero"`
	StoredAt     time.Time           `json:"stored_at,omitzero"`
	Error        string              `json:"error,omitempty"`
	Attempts     []dlq.FailedAttempt `json:"attempts,omitempty"`
	// Mirror says that the dead letter is in a store, and that this is a copy: see [Mirror].
	Mirror bool `json:"mirror,omitempty"`
	// Cut says what was left out because there was no room.
	Cut level `json:"cut,omitempty"`
	// Headers are the message's own, where the broker would not take them as they are.
	Headers []packedHeader `json:"headers,omitempty"`
}

// packedHeader is one header of any bytes.
type packedHeader struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value"`
}

// level is how much of the metadata is written.
type level int

// The levels, from everything to nothing.
const (
	levelFull    level = iota
	levelHistory       // no attempts
	levelError         // and the error cut to shortError
	levelCause         // and nothing but the cause, the queue and when
	levelNone
)

// shortError is the most bytes of an error at levelError.
const shortError = 512

// encode returns the header's value for e at a level, or a later one if it takes less than maxMetadata only then. pack puts the message's
// headers into it, mirror marks a copy.
func encode(e dlq.Entry, at level, pack, mirror bool) (string, level) {
	for ; at < levelNone; at++ {
		m := describe(e, at)
		m.Mirror = mirror
		text := m.json()
		for len(text) > maxMetadata && len(m.Attempts) > 0 {
			m.Attempts, m.Cut = m.Attempts[(len(m.Attempts)+1)/2:], levelHistory // the last ones tell most
			text = m.json()
		}
		switch {
		case len(text) > maxMetadata:
		case pack: // the headers had room before
			m.Headers = packHeaders(e.Message.Headers)
			return m.json(), at
		default:
			return text, at
		}
	}
	return "", levelNone
}

func describe(e dlq.Entry, at level) metadata {
	m := metadata{Version: metadataVersion, Queue: e.Queue, Group: e.Group, Cause: e.Cause, StoredAt: e.StoredAt, Cut: at}
	env, err := e.Message.Envelope()
	if err != nil || env.ID != e.Job || env.Run != e.Run {
		m.Job, m.Run = e.Job, &e.Run
	}
	if at >= levelCause {
		return m
	}
	m.Kind, m.Key, m.Destination, m.EnqueuedAt = e.Kind, e.Key, e.Destination, e.EnqueuedAt
	if err == nil {
		m.Kind, m.Key, m.Destination = unless(e.Kind, env.Kind), unless(e.Key, env.Key), unless(e.Destination, env.Destination)
		if e.EnqueuedAt.Equal(env.EnqueuedAt) {
			m.EnqueuedAt = time.Time{}
		}
	}
	m.State, m.Fingerprint, m.AttemptCount = e.State, e.Fingerprint, e.AttemptCount
	m.FirstFailed, m.LastFailed, m.Error = e.FirstFailedAt, e.LastFailedAt, e.Error
	switch at {
	case levelFull:
		m.Attempts = e.Attempts
	case levelError:
		m.Error = truncate.Text(e.Error, shortError)
	}
	return m
}

// unless returns value, or "" if the envelope has it already.
func unless(value, known string) string {
	if value == known {
		return ""
	}
	return value
}

func packHeaders(headers map[string]string) []packedHeader {
	packed := make([]packedHeader, 0, len(headers))
	for name, value := range headers {
		packed = append(packed, packedHeader{[]byte(name), []byte(value)})
	}
	slices.SortFunc(packed, func(a, b packedHeader) int { return bytes.Compare(a.Name, b.Name) })
	return packed
}

// json returns m in printable ASCII, as some brokers carry nothing else in headers.
func (m metadata) json() string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(m); err != nil { // a time beyond the year 9999
		m.EnqueuedAt, m.FirstFailed, m.LastFailed, m.StoredAt, m.Attempts = time.Time{}, time.Time{}, time.Time{}, time.Time{}, nil
		text.Reset()
		_ = encoder.Encode(m) // of strings and numbers alone
	}
	raw := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		raw = raw[size:]
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return string(out)
}

// parse reads a HeaderDead.
func parse(text string) (metadata, error) {
	var m metadata
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return metadata{}, fmt.Errorf("header %s: %w", HeaderDead, err)
	}
	switch {
	case m.Version != metadataVersion:
		return metadata{}, fmt.Errorf("header %s: version %s is not known here: use a newer release", HeaderDead, strconv.Itoa(m.Version))
	case m.Run != nil && (*m.Run < 0 || m.Job == ""):
		return metadata{}, errors.New("header " + HeaderDead + ": a run without a job, or a negative one")
	}
	return m, nil
}

// original returns the message as it was received before it died, and its metadata, if it has any that can be read.
func original(m queue.Message) (queue.Message, *metadata, error) {
	text, ok := m.Headers[HeaderDead]
	if !ok {
		return m, nil, nil
	}
	var headers map[string]string
	for name, value := range m.Headers {
		if name != HeaderDead {
			headers = with(headers, name, value)
		}
	}
	meta, err := parse(text)
	if err != nil {
		return queue.Message{Body: m.Body, Headers: headers}, nil, err
	}
	for _, h := range meta.Headers {
		headers = with(headers, string(h.Name), string(h.Value))
	}
	return queue.Message{Body: m.Body, Headers: headers}, &meta, nil
}

func with(headers map[string]string, name, value string) map[string]string {
	if headers == nil {
		headers = map[string]string{}
	}
	headers[name] = value
	return headers
}
