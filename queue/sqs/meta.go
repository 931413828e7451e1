package sqs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caisson-go/caisson/queue"
)

// attributeName is the one message attribute of ours. Its value is either an envelope, as producers in other languages write it
// (docs/wire-format.md), or the driver's own metadata around all headers, which begins with metaPrefix. No envelope begins so.
const (
	attributeName = queue.HeaderEnvelope
	metaPrefix    = `{"caisson_sqs":1`
)

// meta is what the driver keeps with a message.
type meta struct {
	Version int `json:"caisson_sqs"`
	// Headers are all headers of the message.
	Headers map[string]string `json:"headers,omitempty"`
	// Body says how the body is encoded: "" is as it is, or bodyBase64, or bodyEmpty.
	Body string `json:"body,omitempty"`
	// ID and EnqueuedMS are those of the first message, in a copy of it.
	ID         string `json:"id,omitempty"`
	EnqueuedMS int64  `json:"enqueued_ms,omitempty"`
	// Attempts and Deliveries were spent before this copy.
	Attempts   int `json:"attempts,omitempty"`
	Deliveries int `json:"deliveries,omitempty"`
	// DueMS is when the message is to be delivered, in unix ms, if that is beyond what SQS can delay. The driver brings it there in hops.
	DueMS int64 `json:"due_ms,omitempty"`
}

const (
	bodyBase64 = "base64"
	bodyEmpty  = "empty"
)

// isCopy reports whether m is of a copy.
func (m *meta) isCopy() bool {
	return m.ID != "" || m.EnqueuedMS != 0 || m.Attempts != 0 || m.Deliveries != 0 || m.DueMS != 0
}

func (m *meta) encode() (string, error) {
	for name, value := range m.Headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return "", fmt.Errorf("header %q is not UTF-8, and SQS carries nothing else", name)
		}
	}
	m.Version = 1
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return "", fmt.Errorf("encode metadata: %w", err)
	}
	return toASCII(strings.TrimSuffix(buf.String(), "\n")), nil
}

// toASCII escapes what is left of other characters in JSON: SQS refuses some of them, and emulators more.
func toASCII(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] > 0x7e {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r <= 0x7e:
			b.WriteByte(byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// decodeMeta reads the value of our attribute. It returns false for an envelope, and for metadata of another version or that is broken.
func decodeMeta(value string) (meta, bool) {
	if !strings.HasPrefix(value, metaPrefix) {
		return meta{}, false
	}
	var m meta
	if err := json.Unmarshal([]byte(value), &m); err != nil || m.Version != 1 {
		return meta{}, false
	}
	return m, true
}

// validText reports whether SQS takes s as a body or as the value of an attribute. It takes nothing empty.
func validText(s string) bool {
	if s == "" || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return false
		}
	}
	return true
}

// beyondBMP reports whether s has characters of more than 16 bits, emoji among them. SQS takes them and emulators refuse them.
func beyondBMP(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xf0 { // the first byte of four
			return true
		}
	}
	return false
}
