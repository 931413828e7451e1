package jsonmatch_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// What is not JSON matches nothing, wherever it is broken.
func TestBrokenJSONNeverMatches(t *testing.T) {
	t.Parallel()
	whole := []byte(`{"a":{"b":[1,{"c":"x\"y"},null]},"d":-1.5e3,"e":"ü"}`)
	var ms []jsonmatch.Match
	for _, text := range []string{"a", "a.b[0]=1", `a.b[*].c="x\"y"`, "d=-1500", "e=ü", "a.b[2]=null", "$"} {
		m, err := jsonmatch.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonmatch.All(whole, []jsonmatch.Match{m}) {
			t.Errorf("%s does not match the whole", text)
		}
		ms = append(ms, m)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := append([]byte{}, whole...)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			body[at] = rapid.SampledFrom([]byte("{}[]\",:\\x1 \x00")).Draw(t, "byte")
		}
		body = body[:rapid.IntRange(1, len(body)).Draw(t, "length")]
		for _, m := range ms {
			if jsonmatch.All(body, []jsonmatch.Match{m}) && !json.Valid(body) {
				t.Fatalf("%s matches %q", m, body)
			}
		}
	})
}
