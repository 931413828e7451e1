package dlq

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFingerprintErrorGroupsWhatIsAlike(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string][]string{
		"numbers":   {"row 12 of 3,400.5 failed", "row 7 of 1 failed"},
		"uuid":      {"order 6ba7b810-9dad-11d1-80b4-00c04fd430c8 not found", "order 00000000-0000-0000-0000-000000000001 not found"},
		"hex":       {"commit deadbeef01 is missing", "commit 0123456789abcdef0123 is missing"},
		"pointer":   {"panic at 0xc000012345", "panic at 0x1"},
		"token":     {"request req_8f3kd93kfa0 refused", "request req_1aaaaaaaaa2 refused"},
		"address":   {"dial tcp 10.0.0.1:443: connection refused", "dial tcp 192.168.17.4:8443: connection refused"},
		"address 6": {"dial tcp [::1]:443: connection refused", "dial tcp [2001:db8::7]:1: connection refused"},
		"email":     {"mailbox ann@example.test is full", "mailbox bob.x+y@mail.example.test is full"},
		"quoted":    {`invalid value "abc" for field 'x y'`, `invalid value "" for field 'z'`},
		"query":     {"get https://api.test/v/users?token=abc: EOF", "get https://api.test/v/users?token=x&page=2: EOF"},
		"path ids":  {"get https://api.test/users/1234/cards: EOF", "get https://API.test:8443/users/a9c/cards: EOF"},
		"durations": {"no answer within 1m30s", "no answer within 250ms", "no answer within 1.5h"},
		"names":     {"worker-17 lost", "worker-3 lost"},
		"spaces":    {"no  route\n\tto host", "no route to host "},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range texts[1:] {
				if FingerprintError(text) != FingerprintError(texts[0]) {
					t.Errorf("%q and %q are apart: %q, %q", texts[0], text, normaliseError(texts[0]), normaliseError(text))
				}
			}
		})
	}
}

func TestFingerprintErrorKeepsApartWhatDiffers(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, text := range []string{
		"", "status 404", "status 503", "status code: 500", "HTTP/1.1 502 bad gateway", "HTTP/1.1 504 bad gateway", "SQLSTATE 23505",
		"connection refused", "connection reset by peer", "get https://api.test/users/1: EOF", "get https://hooks.test/users/1: EOF",
		"can't read the file, won't retry", "can't write the file, won't retry",
	} {
		fp := FingerprintError(text)
		if other, ok := seen[fp]; ok {
			t.Errorf("%q and %q fall together: %q", text, other, normaliseError(text))
		}
		seen[fp] = text
	}
}

// The fingerprint is stored: a change of it splits groups at the upgrade, so that it must be on purpose.
func TestFingerprintErrorIsStable(t *testing.T) {
	t.Parallel()
	const text = "post https://api.test/v1/charges/ch_17?key=a: status 503 after 2.5s"
	if got, want := normaliseError(text), "post https://api.test/<id>/charges/<id> status 503 after <duration>"; got != want {
		t.Errorf("normalised to %q, want %q", got, want)
	}
	if got, want := FingerprintError("connection refused"), "25a84382140b"; got != want {
		t.Errorf("fingerprint %q, want %q", got, want)
	}
}

func FuzzFingerprintError(f *testing.F) {
	f.Add("dial tcp 10.0.0.1:443: connection refused", uint32(7), uint32(8))
	f.Add("\xff\xfe 'x \" `", uint32(0), uint32(1<<31))
	f.Add(strings.Repeat("ü9", 3000), uint32(1), uint32(10))
	f.Fuzz(func(t *testing.T, text string, a, b uint32) {
		fp := FingerprintError(text)
		if len(fp) != 12 || fp != FingerprintError(text) {
			t.Fatalf("fingerprint %q of %q is not stable", fp, text)
		}
		if !utf8.ValidString(normaliseError(text)) {
			t.Fatalf("normalised text of %q is not UTF-8", text)
		}
		// Numbers of the same length, since a longer one may move the cut.
		one, two := fmt.Sprintf("%s after %010d rows", text, a), fmt.Sprintf("%s after %010d rows", text, b)
		if FingerprintError(one) != FingerprintError(two) {
			t.Fatalf("%q and %q differ only in a number: %q, %q", one, two, normaliseError(one), normaliseError(two))
		}
	})
}
