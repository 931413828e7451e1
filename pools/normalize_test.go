package pools

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalizeDestination(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for raw, want := range map[string]string{
		"https://hooks.test/cb?id=1":       "hooks.test",
		"HOOKS.test":                       "hooks.test",
		"hooks.test.":                      "hooks.test",
		"hooks.test:443":                   "hooks.test",
		"u@hooks.test":                     "hooks.test",
		"https://u:p@hooks.test:443/a@b#c": "hooks.test",
		"http://hooks.test.:80":            "hooks.test",
		"//hooks.test/x":                   "hooks.test",
		"hooks.test?x=1":                   "hooks.test",
		"hooks.test:":                      "hooks.test",
		"https://hooks.test:8443/cb":       "hooks.test:8443",
		"localhost:8080/cb":                "localhost:8080",
		"https://hooks.test\\@evil.test/":  "hooks.test",
		"https://[2001:DB8::1]:443/x":      "[2001:db8::1]",
		"2001:db8::1":                      "2001:db8::1",
		"  SendGrid ":                      "sendgrid",
		"team/mail":                        "team/mail",
		"tenant:42":                        "tenant:42",
		"endpoint_01JABC":                  "endpoint_01jabc",
		"Ünicode.test":                     "Ünicode.test", // no IDNA: only ASCII is folded
		"":                                 "",
		"  ":                               "",
		long + "." + "test":                NormalizeDestination(long + ".test"),
		"ftp://files.test/" + long + "?q=" + long: "files.test",
	} {
		if got := NormalizeDestination(raw); got != want {
			t.Errorf("NormalizeDestination(%q) = %q, want %q", raw, got, want)
		}
	}
	a, b := NormalizeDestination(long+"a"), NormalizeDestination(long+"b")
	if len(a) != maxName || a == b {
		t.Errorf("long names: %q and %q", a, b)
	}
	if a, b := NormalizeDestination("https:///a"), NormalizeDestination("https:///b"); a == "" || a == b {
		t.Errorf("without a host: %q and %q", a, b)
	}
}

func TestNormalizeDestinationTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"http", "://", "//", "/", "@", ":", "443", "80", "8080", ".", "..", "a", "B", "hooks.test", "[", "]", "::1", "?", "#", " ", "\\", "é", "\x00",
		strings.Repeat("y", 130),
	})
	rapid.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
		once := NormalizeDestination(raw)
		if twice := NormalizeDestination(once); twice != once {
			t.Fatalf("%q becomes %q, then %q", raw, once, twice)
		}
		if len(once) > maxName || once == "" && strings.TrimSpace(raw) != "" {
			t.Fatalf("%q becomes %q", raw, once)
		}
	})
}
