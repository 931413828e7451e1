package signature

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestParseSecretRefuses(t *testing.T) {
	t.Parallel()
	encoded := func(n int) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, n)) }
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"whsec_" + encoded(24), true},
		{"whsec_" + encoded(64), true},
		{"whsec_" + encoded(23), false},
		{"whsec_" + encoded(65), false},
		{"whsec_" + encoded(1), false},
		{"whsec_", false},
		{"", false},
		{encoded(32), false},
		{"whsec_" + strings.TrimRight(encoded(25), "="), false},
		{"whsec_" + encoded(32) + "\n", false},
		{"whsec_" + strings.Repeat("-_", 20), false},
		{"whsk_" + encoded(32), true},
		{"whsk_" + encoded(31), false},
		{"whsk_" + encoded(64), false}, // its public half is not its own
		{"whpk_" + encoded(32), false},
		{"WHSEC_" + encoded(32), false},
	} {
		_, err := ParseSecret(c.text)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v, want ok=%v", c.text, err, c.ok)
		}
		if _, key, _ := strings.Cut(c.text, "_"); err != nil && len(key) > 4 && strings.Contains(err.Error(), key) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
}

// TestSecretIsNeverShown prints secrets in every way that we could think of.
func TestSecretIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, secret := range []Secret{NewSecret(), mustSecret(t, ed25519Private)} {
		verifier := &Verifier{keys: []verifyKey{{secret: secret}}}
		var shown strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&shown, verb+"\n", secret)
			fmt.Fprintf(&shown, verb+"\n", &secret)
			fmt.Fprintf(&shown, verb+"\n", []Secret{secret})
			fmt.Fprintf(&shown, verb+"\n", struct{ s Secret }{secret}) // fmt cannot call methods here
			fmt.Fprintf(&shown, verb+"\n", verifier)
		}
		for _, v := range []any{secret, map[string]any{"s": secret, "v": verifier}} {
			if err := json.NewEncoder(&shown).Encode(v); err != nil {
				t.Fatal(err)
			}
			slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "v", v)
			slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "v", v)
		}
		raw := secret.key().symmetric
		if raw == nil {
			raw = secret.key().private
		}
		_, text, _ := strings.Cut(secret.Reveal(), "_")
		for _, leak := range []string{
			text, fmt.Sprintf("%x", raw[:8]), fmt.Sprintf("%X", raw[:8]), strings.Trim(fmt.Sprintf("%d", raw[:8]), "[]"),
			fmt.Sprintf("%q", raw[:8]),
		} {
			if strings.Contains(shown.String(), leak) {
				t.Errorf("%q is shown in:\n%s", leak, shown.String())
			}
		}
	}
}

func TestSecretAsText(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	var read struct{ Key Secret }
	if err := json.Unmarshal([]byte(`{"Key":"`+secret.Reveal()+`"}`), &read); err != nil {
		t.Fatal(err)
	}
	if !read.Key.Equal(secret) || read.Key.Equal(NewSecret()) || read.Key.Equal(Secret{}) {
		t.Error("the secret read is not the one written")
	}
	if err := json.Unmarshal([]byte(`{"Key":"[secret]"}`), &read); err == nil {
		t.Error("a mask was taken for a secret")
	}
}
