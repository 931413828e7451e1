package dlqtest

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// DrawJSON draws a document in which [DrawJSONMatch] finds something now and then: small, with keys that come twice, escapes, equal numbers
// in several forms, and bytes that are not text.
func DrawJSON(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if depth == 0 || kind < 2 {
		return space.Draw(t, "space") + rapid.SampledFrom([]string{
			"1", "1.0", "10e-1", "0", "-0", "0.0", "2", "true", "false", "null", `"a"`, `"\u0061"`, `"1"`, `"é"`, `"\u00e9"`, `"\\\""`, "\"\xff\"",
			`"\u0000"`, `"\ud834\udd1e"`, `"\ud834"`, "1e300000",
		}).Draw(t, "scalar") + space.Draw(t, "space")
	}
	parts := make([]string, rapid.IntRange(0, 3).Draw(t, "n"))
	for i := range parts {
		if kind > 2 {
			parts[i] = rapid.SampledFrom([]string{`"a"`, `"b"`, `""`, `"\u0061"`, ` "a" `, "\"\xff\"", `"\"}"`, `"0"`}).Draw(t, "key") + ":"
		}
		parts[i] += DrawJSON(t, depth-1)
	}
	inside := space.Draw(t, "space") + strings.Join(parts, ",")
	if kind == 2 {
		return "[" + inside + "]"
	}
	return "{" + inside + "}"
}

// DrawJSONMatch draws a question about a document of [DrawJSON].
func DrawJSONMatch(t *rapid.T) jsonmatch.Match {
	return jsonmatch.Match{
		Path: rapid.SliceOfN(rapid.SampledFrom([]jsonmatch.Step{
			{Key: "a"}, {Key: "b"}, {Key: ""}, {Key: "0"}, {Key: "\ufffd"}, {Kind: jsonmatch.StepAny}, {Kind: jsonmatch.StepIndex}, {Kind: jsonmatch.StepIndex, Index: 1},
		}), 0, 3).Draw(t, "path"),
		Value: rapid.SampledFrom([]string{"", "1", "1.0", "-0", "true", "null", `"a"`, `"1"`, `"é"`, "\"\ufffd\"", `"\u0000"`, "1e300000"}).Draw(t, "value"),
	}
}
