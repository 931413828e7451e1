package endpoints

import (
	"strings"
	"testing"

	"github.com/caisson-go/caisson/webhook/signature"
)

// FuzzDecode reads records that anything may have written. Whatever is in them, an error holds nothing of what was sealed, and what was read can
// be written and read again.
func FuzzDecode(f *testing.F) {
	keys := ring(f)
	secret := signature.NewSecret().Reveal()
	f.Add([]byte(`{"version":1,"events":["a.*"],"schedule":"fixed(1s, 2s)"}`), []byte(`{"url":"https://example.com/","secrets":["`+secret+`"]}`))
	f.Add([]byte(`{"timeout_ns":-1,"rate":1e308}`), []byte(`{"headers":{"a":"AA=="},"retiring":[{"secret":"`+secret+`","until":"2026-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{}`), []byte(`{"secrets":["whsec_notasecretnotasecret"]}`))
	f.Add([]byte(`[]`), []byte("null"))
	f.Fuzz(func(t *testing.T, settings, plain []byte) {
		entry, err := keys.decode(Record{ID: "a", Settings: settings, Sealed: keys.seal("a", plain), Key: keys.Current()})
		if err != nil {
			if entry.URL != "" || len(entry.Secrets) != 0 || len(plain) > 12 && !strings.Contains(string(settings), string(plain)) && strings.Contains(err.Error(), string(plain)) {
				t.Fatalf("an error shows what was sealed: %v", err)
			}
			return
		}
		again, err := keys.encode(entry.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		second, err := keys.decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(entry.Endpoint, second.Endpoint); d != "" {
			t.Fatalf("(-first +second):\n%s", d)
		}
	})
}
