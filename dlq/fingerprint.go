package dlq

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"

	"github.com/caisson-go/caisson/internal/truncate"
)

// fingerprintInput is how many bytes of an error count: enough for the message and the first frames of a stack.
const fingerprintInput = 2 << 10

// FingerprintError returns a short, stable name for errors that differ only in what changes from job to job: numbers, ids,
// addresses, quoted values, the query of a URL, durations. Status codes are kept, so that 404 and 503 stay apart. It is the
// first 12 hex digits of the SHA-256 of the normalised text, and counts the first 2 KiB only.
func FingerprintError(text string) string {
	sum := sha256.Sum256([]byte(normaliseError(text)))
	return hex.EncodeToString(sum[:6])
}

// variable matches what changes from job to job. The order of the alternatives matters: the first that matches at a place wins.
var variable = regexp.MustCompile(strings.Join([]string{
	`(?P<status>(?i:\b(?:status(?: ?code)?|code|http(?:/\d(?:\.\d)?)?|sqlstate)[ :=]{1,2}[0-9]{3,5}\b))`,
	`(?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>` + "`" + `]+)`,
	`(?P<quoted>"[^"\n]*"|` + "`[^`\n]*`" + `|\B'[^'\n]*'\B)`,
	`(?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)`,
	`(?P<email>\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b)`,
	`(?P<ip6>\[[0-9a-fA-F:.]*:[0-9a-fA-F:.%]*\](?::[0-9]+)?|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){2,7}\b)`,
	`(?P<ip4>\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?\b)`,
	`(?P<hex>\b0[xX][0-9a-fA-F]+\b)`,
	`(?P<duration>\b(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+\b)`,
	`(?P<token>\b[0-9a-zA-Z_]{8,}\b)`,
	`(?P<number>[0-9]+(?:[.,][0-9]+)*)`,
}, "|"))

var placeholders = map[string]string{
	"quoted": "<value>", "uuid": "<id>", "email": "<address>", "ip6": "<address>", "ip4": "<address>",
	"hex": "<id>", "duration": "<duration>", "number": "<n>",
}

func normaliseError(text string) string {
	text = truncate.Text(text, fingerprintInput)
	var b strings.Builder
	names := variable.SubexpNames()
	end := 0
	for _, m := range variable.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[end:m[0]])
		end = m[1]
		for i := 1; i < len(names); i++ {
			if m[2*i] >= 0 {
				b.WriteString(normaliseToken(names[i], text[m[0]:m[1]]))
				break
			}
		}
	}
	b.WriteString(text[end:])
	return strings.Join(strings.Fields(b.String()), " ")
}

func normaliseToken(class, text string) string {
	switch class {
	case "status":
		return strings.ToLower(text)
	case "url":
		return normaliseURL(text)
	case "token":
		return normaliseWord(text)
	}
	return placeholders[class]
}

// normaliseURL keeps scheme, host name and the fixed part of the path: the host is what was called, everything behind it may
// carry an id.
func normaliseURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "<url>"
	}
	segments := strings.Split(u.Path, "/")
	for i, s := range segments {
		if strings.ContainsAny(s, "0123456789") {
			segments[i] = "<id>"
		}
	}
	host := u.Hostname()
	if strings.Trim(host, "0123456789.") == "" || strings.Contains(host, ":") {
		host = "<address>"
	}
	return u.Scheme + "://" + strings.ToLower(host) + strings.Join(segments, "/")
}

// normaliseWord replaces a long word by <id> if it is one: hex digits, or many digits among letters. A word of letters stays,
// and so does the number at the end of a name such as handler12345, less the number.
func normaliseWord(word string) string {
	digits := strings.Count(word, "0")
	for d := '1'; d <= '9'; d++ {
		digits += strings.Count(word, string(d))
	}
	if digits == 0 {
		return word
	}
	if strings.Trim(word, "0123456789abcdefABCDEF") == "" {
		return "<id>"
	}
	trimmed := strings.TrimRight(word, "0123456789")
	if len(word)-len(trimmed) == digits {
		return trimmed + "<n>"
	}
	return "<id>"
}
