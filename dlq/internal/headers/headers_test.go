package headers

import (
	"maps"
	"testing"
)

func TestHeadersComeBack(t *testing.T) {
	t.Parallel()
	for _, headers := range []map[string]string{nil, {"": ""}, {"a": "b", "A": "B", "\x00": "\xff\xfe", "long": string(make([]byte, 1000))}} {
		got, err := Decode(Encode(headers))
		if err != nil || !maps.Equal(got, headers) {
			t.Errorf("%q came back as %q, %v", headers, got, err)
		}
	}
}

func FuzzDecodeHeaders(f *testing.F) {
	f.Add([]byte{})
	f.Add(Encode(map[string]string{"a": "b", "c": ""}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		headers, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(headers))
		if err != nil || !maps.Equal(headers, again) {
			t.Fatalf("%q came back as %q, %v", headers, again, err)
		}
	})
}
