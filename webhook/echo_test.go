package webhook

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What receivers repeat of what they were sent.
func TestEchoes(t *testing.T) {
	t.Parallel()
	e := Endpoint{
		URL: "https://hooks.example.com/services/T0AAA/B0BBB/xyzSECRETpath?token=querySECRET01&name=two+SECRETS&v=2",
		Headers: map[string]string{
			"Authorization": "Bearer sk:SECRET:0123", "X-Pair": "user:pairSECRET00",
			"X-Basic": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:basicSECRET")),
		},
	}
	for body, want := range map[string]string{
		`{"error":"invalid api key: sk:SECRET:0123"}`:                 `{"error":"invalid api key: [left out]"}`,
		`{"error":"unknown token querySECRET01"}`:                     `{"error":"unknown token [left out]"}`,
		`unknown pairSECRET00`:                                        `unknown [left out]`,
		`no webhook xyzSECRETpath here`:                               `no webhook [left out] here`,
		`{"path":"\/services\/T0AAA\/B0BBB\/xyzSECRETpath"}`:          `{"path":"[left out]"}`,
		`Cannot POST /x?token=querySECRET01&amp;name=two+SECRETS`:     `Cannot POST /x?token=[left out]&amp;name=[left out]`,
		`no name two SECRETS, or &quot;two%20SECRETS&quot;`:           `no name [left out], or &quot;[left out]&quot;`,
		`wrong password basicSECRET`:                                  `wrong password [left out]`,
		`user, token, Bearer, v=2`:                                    `user, token, Bearer, v=2`,
		`{"html":"<p>\u003cb\u003eBearer sk&#58;SECRET&#x3a;0123</p>`: `{"html":"<p>\u003cb\u003e[left out]</p>`,
	} {
		if got := excerpt([]byte(body), e); got != want {
			t.Errorf("%s becomes %s, want %s", body, got, want)
		}
	}
	for _, echo := range []string{"sk:SECRET:0123", `sk\u003aSECRET\u003a0123`, "sk&colon;SECRET&colon;0123", "/services/T0AAA/B0BBB/xyzSECRETpath"} {
		for n := range len(echo) - 1 {
			body := strings.Repeat("x", maxExcerpt-n-1) + echo[:n+1]
			left := strings.TrimLeft(excerpt([]byte(body), e), "x")
			if left = strings.TrimSuffix(left, "[left out]"); len(left) > 2*maxEntity || strings.Contains(left, "SEC") {
				t.Errorf("an echo that was cut off: %q leaves %q", echo[:n+1], left)
			}
		}
	}
}

// escapes are ways in which a receiver may write a text.
var escapes = map[string]func(string) string{
	"raw":  func(s string) string { return s },
	"json": func(s string) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
	"slash": func(s string) string {
		b, _ := json.Marshal(s)
		return strings.ReplaceAll(string(b[1:len(b)-1]), "/", `\/`)
	},
	"quote": func(s string) string { q := strconv.Quote(s); return q[1 : len(q)-1] },
	"ascii": func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] },
	"html":  html.EscapeString,
	"query": url.QueryEscape,
	"path":  url.PathEscape,
	"codes": func(s string) (out string) {
		for _, r := range s {
			out += fmt.Sprintf("&#%d;", r)
		}
		return out
	},
}

// No part of a secret survives in what is shown, however its receiver writes it.
func TestNoEchoSurvives(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"raw", "json", "slash", "quote", "ascii", "html", "query", "path", "codes"})
	secret := rapid.StringMatching(`[a-zA-Z0-9._~!$'()*@+/<>&%\\-]{6,40}[g-z]{2}`) // an escape that goes on behind it is nobody's
	around := rapid.SampledFrom([]string{"", "no ", `{"error":"`, "<p>", "&amp;", `\n`, "% "})
	rapid.Check(t, func(rt *rapid.T) {
		word := secret.Draw(rt, "secret")
		e := Endpoint{URL: "https://example.com/hooks"}
		switch place := rapid.SampledFrom([]string{"header", "token", "cookie", "segment", "raw query", "query"}).Draw(rt, "place"); place {
		case "header":
			e.Headers = map[string]string{"X-Key": word}
		case "token":
			e.Headers = map[string]string{"Authorization": "Bearer " + word}
		case "cookie":
			e.Headers = map[string]string{"Cookie": "a=1; session=" + word + "; b=2"}
		case "segment":
			e.URL += "/" + url.PathEscape(word) + "/x"
		case "raw query":
			e.URL += "?v=1&" + url.QueryEscape(word)
		default:
			e.URL += "?v=1&token=" + url.QueryEscape(word) + "&x=y"
		}
		if _, err := url.Parse(e.URL); err != nil {
			rt.Fatal(err)
		}
		before, after := around.Draw(rt, "before"), around.Draw(rt, "after")
		echo := escapes[names.Draw(rt, "first")](escapes[names.Draw(rt, "then")](word))
		want := oneLine(before + "[left out]" + after)
		if got := excerpt([]byte(before+echo+after), e); got != want {
			rt.Fatalf("%q, written as %q, leaves %q, want %q", word, echo, got, want)
		}
	})
}
