package jsonmatch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/internal/testkit/dlqtest"
)

func TestParseJSONMatch(t *testing.T) {
	t.Parallel()
	key := func(k string) jsonmatch.Step { return jsonmatch.Step{Key: k} }
	at := func(n int) jsonmatch.Step { return jsonmatch.Step{Kind: jsonmatch.StepIndex, Index: n} }
	each := jsonmatch.Step{Kind: jsonmatch.StepAny}
	for text, want := range map[string]jsonmatch.Match{
		`order.id=7`:           {Path: []jsonmatch.Step{key("order"), key("id")}, Value: `7`},
		`$.order.id = 7 `:      {Path: []jsonmatch.Step{key("order"), key("id")}, Value: `7`},
		`$.items[0].sku=abc`:   {Path: []jsonmatch.Step{key("items"), at(0), key("sku")}, Value: `"abc"`},
		`items[*].sku="x"`:     {Path: []jsonmatch.Step{key("items"), each, key("sku")}, Value: `"x"`},
		`"a.b".c`:              {Path: []jsonmatch.Step{key("a.b"), key("c")}},
		`["a\"]"]['it\'s']=`:   {Path: []jsonmatch.Step{key(`a"]`), key("it's")}, Value: `""`},
		`$[12]=null`:           {Path: []jsonmatch.Step{at(12)}, Value: `null`},
		`$`:                    {},
		`a=b=c`:                {Path: []jsonmatch.Step{key("a")}, Value: `"b=c"`},
		`a="7"`:                {Path: []jsonmatch.Step{key("a")}, Value: `"7"`},
		`a="\u0041\ud800<"`:    {Path: []jsonmatch.Step{key("a")}, Value: `"A` + "\ufffd" + `<"`},
		`a={"b":1}`:            {Path: []jsonmatch.Step{key("a")}, Value: `"{\"b\":1}"`},
		`größe-2_x=1.50e+3`:    {Path: []jsonmatch.Step{key("größe-2_x")}, Value: `1.50e+3`},
		`a=010`:                {Path: []jsonmatch.Step{key("a")}, Value: `"010"`},
		`a.0=True`:             {Path: []jsonmatch.Step{key("a"), key("0")}, Value: `"True"`},
		`a[""]="` + "\n" + `"`: {Path: []jsonmatch.Step{key("a"), key("")}, Value: `"\"\n\""`},
	} {
		got, err := jsonmatch.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{
		``, `=7`, `a.`, `.a`, `a..b`, `a[`, `a[]`, `a[-1]`, `a[1`, `a[x]`, `a[1.5]`, `a[99999999999]`, `a["x]`, `a["x"`, `a b=1`, `a*`, `$a`, `a.*=1`, `"a`,
		`a["\x"]`, "a=\xff", `a]`, `a<3`, strings.Repeat("a.", 70) + "a", strings.Repeat("a", 5000),
	} {
		if m, err := jsonmatch.Parse(text); !errors.Is(err, jsonmatch.ErrSyntax) {
			t.Errorf("%.50q is read as %+v, %v", text, m, err)
		}
	}
}

func FuzzParseJSONMatch(f *testing.F) {
	for _, text := range []string{`order.id=7`, `$.items[0].sku=abc`, `items[*]["x\u0041"]`, `$`, `a['b\'c']="\ud800"`, `a=1e5`} {
		f.Add(text, []byte(`{"a":1}`))
	}
	for _, body := range dlqtest.AwkwardBodies() {
		if len(body) < 1000 {
			f.Add("a=7", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		m, err := jsonmatch.Parse(text)
		if err != nil {
			return
		}
		again, err := jsonmatch.Parse(m.String())
		if err != nil {
			if len(m.String()) > 4<<10 {
				return // escapes made it longer than an expression may be
			}
			t.Fatalf("%q was written as %q, which is not read: %v", text, m.String(), err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Fatalf("%q came back otherwise:\n%s", text, diff)
		}
		if hugeExponent.MatchString(text) || hugeExponent.Match(body) {
			return // cannot be written out to compare
		}
		if got, want := m.Matches(body), decodedMatches(m, body); got != want {
			t.Fatalf("%s in %q: %v, want %v", m, body, got, want)
		}
	})
}

var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// decodedMatches answers as [jsonmatch.Match] does, by decoding the whole body.
func decodedMatches(m jsonmatch.Match, body []byte) bool {
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if !json.Valid(body) || dec.Decode(&doc) != nil {
		return false
	}
	return holds(doc, m)
}

func holds(v any, m jsonmatch.Match) bool {
	if len(m.Path) == 0 {
		return m.Value == "" || isScalar(v, m.Value)
	}
	step := m.Path[0]
	m.Path = m.Path[1:]
	object, _ := v.(map[string]any)
	array, _ := v.([]any)
	switch step.Kind {
	case jsonmatch.StepKey:
		member, ok := object[step.Key]
		return ok && holds(member, m)
	case jsonmatch.StepIndex:
		return step.Index < len(array) && holds(array[step.Index], m)
	case jsonmatch.StepAny:
		for _, element := range array {
			if holds(element, m) {
				return true
			}
		}
	}
	return false
}

func isScalar(v any, want string) bool {
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == strconv.FormatBool(v)
	case string:
		var s string
		return want[0] == '"' && json.Unmarshal([]byte(want), &s) == nil && s == v
	case json.Number:
		if want[0] != '-' && (want[0] < '0' || want[0] > '9') {
			return false
		}
		if hugeExponent.MatchString(v.String()) || hugeExponent.MatchString(want) {
			return v.String() == want // the documents here have them in one form only
		}
		return rational(v.String()).Cmp(rational(want)) == 0
	}
	return false
}

func rational(s string) *big.Rat {
	r, _ := new(big.Rat).SetString(s)
	return r
}

func TestJSONMatchAgreesWithDecoding(t *testing.T) {
	t.Parallel()
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		body := dlqtest.DrawJSON(t, 4)
		for range 25 { // few questions match
			m := dlqtest.DrawJSONMatch(t)
			got, want := m.Matches([]byte(body)), decodedMatches(m, []byte(body))
			if got != want {
				t.Fatalf("%s in %s: %v, want %v", m, body, got, want)
			}
			if got {
				matched++
			}
		}
	})
	if matched == 0 {
		t.Error("nothing ever matched")
	}
}

func TestNumbersCompareExactly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"1e99999999999999999999", "10e99999999999999999998", true},
		{"1e99999999999999999999", "1e99999999999999999998", false},
		{"-0", "0e-5", true},
		{"-1", "1", false},
		{"0.00010", "1E-4", true},
		{"1200", "12e2", true},
		{"9007199254740993", "9007199254740992", false},
	} {
		m := jsonmatch.Match{Value: tc.a}
		if m.Matches([]byte(tc.b)) != tc.same {
			t.Errorf("%s and %s: same is %v, want %v", tc.a, tc.b, !tc.same, tc.same)
		}
	}
}
