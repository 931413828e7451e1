package webhookapi

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzObject: what is taken as an object is one, field by field and byte by byte, and reading it as an endpoint never panics.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"id":"a","url":"https://example.com"}`, `{"a":{"a":1,"a":2}}`, `{"a":1,"a":2}`, `{"tls":{"key":null}}`, `{"headers":{"X":"1"}} `, `{"a":1}x`, `[]`, ``,
		`{"events":["a",null]}`, `{"timeout":"1h","backoff":"fixed(1s)"}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := parseObject(text)
		var whole map[string]json.RawMessage
		valid := json.Unmarshal(text, &whole) == nil && whole != nil && utf8.Valid(text)
		if err == nil != valid {
			if valid { // encoding/json takes the last of two fields
				return
			}
			t.Fatalf("%q is taken, and is no object", text)
		}
		if err != nil {
			return
		}
		if len(o) != len(whole) {
			t.Fatalf("%q: %d fields, want %d", text, len(o), len(whole))
		}
		for name, value := range whole {
			if string(o[name]) != string(value) {
				t.Errorf("%q: field %q is %q, want %q", text, name, o[name], value)
			}
		}
		_, _ = o.endpoint()
		_, _ = o.change()
	})
}
