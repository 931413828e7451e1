package dlqcmd

import (
	"unicode/utf8"

	"github.com/caisson-go/caisson/dlq"
)

// record is the JSON form of one entry with its message, as show and export print it.
type record struct {
	dlq.Entry
	// Headers are the message's. Where one is no valid UTF-8, which JSON cannot carry, HeadersBase64 has them instead.
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"`
	// Payload is the body, byte for byte.
	Payload []byte `json:"payload_base64"`
}

func recordOf(e dlq.Entry) record {
	r := record{Entry: e, Headers: e.Message.Headers, Payload: e.Message.Body}
	if r.Payload == nil {
		r.Payload = []byte{}
	}
	for name, value := range e.Message.Headers {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			continue
		}
		r.Headers, r.HeadersBase64 = nil, make(map[string][]byte, len(e.Message.Headers))
		for name, value := range e.Message.Headers {
			r.HeadersBase64[name] = []byte(value)
		}
		break
	}
	return r
}
