package headers_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/queue/internal/headers"
)

func TestHeadersLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) })
		want := rapid.MapOf(text, text).Draw(t, "headers")
		data := headers.Encode(want)
		got, err := headers.Decode(data)
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
		if len(want) == 1 { // cut anywhere, it is no headers rather than wrong ones
			cut := data[:rapid.IntRange(1, len(data)-1).Draw(t, "cut")]
			if got, err := headers.Decode(cut); len(got) != 0 || !errors.Is(err, headers.ErrDamaged) {
				t.Fatalf("%q gave %q, %v", cut, got, err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(headers.Encode(map[string]string{"a": "b"}))
	f.Add([]byte("\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := headers.Decode(data)
		if err == nil && len(h) == 0 && len(data) > 0 {
			t.Errorf("%q is no headers, and no damage", data)
		}
	})
}
