package endpoints

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-go/caisson/webhook/signature"
)

func ring(t testing.TB, keys ...string) *Keyring {
	t.Helper()
	if len(keys) == 0 {
		keys = []string{NewKey()}
	}
	k, err := ParseKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKeyringRefuses(t *testing.T) {
	t.Parallel()
	good := NewKey()
	short := base64.StdEncoding.EncodeToString(make([]byte, 31))
	for _, c := range []struct {
		keys []string
		want string
	}{
		{nil, "none is given"},
		{[]string{""}, "keys[0] has 0 bytes"},
		{[]string{good, short}, "keys[1] has 31 bytes"},
		{[]string{good[:43]}, "keys[0]: not valid base64"},
		{[]string{good, "secret!"}, "keys[1]: not valid base64"},
		{[]string{good, NewKey(), good}, "keys[2] is given twice"},
	} {
		_, err := ParseKeyring(c.keys...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q in it", err, c.want)
		}
		for _, k := range c.keys {
			if err != nil && k != "" && strings.Contains(err.Error(), k) {
				t.Errorf("the error holds a key: %v", err)
			}
		}
	}
	if _, err := ParseKeyring(good + "\n"); err != nil {
		t.Errorf("a key from a file, with its line break: %v", err)
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	oldKey, newKey := NewKey(), NewKey()
	before, both, after := ring(t, oldKey), ring(t, newKey, oldKey), ring(t, newKey)
	if before.Current() == both.Current() || both.Current() != after.Current() {
		t.Errorf("current keys are %s, %s, %s", before.Current(), both.Current(), after.Current())
	}
	plain := []byte("the plain text")
	sealed := before.seal("a", plain)
	if bytes.Contains(sealed, plain) || bytes.Equal(sealed, before.seal("a", plain)) {
		t.Error("sealed in the clear, or twice with one nonce")
	}
	for name, k := range map[string]*Keyring{"its own": before, "one with it": both} {
		if got, err := k.open("a", before.Current(), sealed); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := after.open("a", before.Current(), sealed); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), before.Current()) || !strings.Contains(err.Error(), after.Current()) {
		t.Errorf("without the key: %v", err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another endpoint's": func() ([]byte, error) { return before.open("b", before.Current(), sealed) },
		"under another key":  func() ([]byte, error) { return both.open("a", both.Current(), sealed) },
		"empty":              func() ([]byte, error) { return before.open("a", before.Current(), nil) },
		"cut":                func() ([]byte, error) { return before.open("a", before.Current(), sealed[:len(sealed)-1]) },
	} {
		if got, err := open(); err == nil || got != nil || errors.Is(err, ErrNoKey) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := before.open("a", before.Current(), changed); err == nil {
			t.Errorf("opens with byte %d changed", i)
		}
	}
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	oldKey, newKey := NewKey(), NewKey()
	before, both := ring(t, oldKey), ring(t, newKey, oldKey)
	a, b := signature.NewSecret(), signature.NewSecret()
	marks := both.fingerprints([]signature.Secret{a, b})
	if len(marks) != 4 {
		t.Fatalf("%d fingerprints of two secrets under two keys", len(marks))
	}
	mark := before.fingerprints([]signature.Secret{a})[0]
	if !bytes.Equal(mark, marks[1]) || bytes.Equal(mark, marks[0]) || bytes.Equal(mark, marks[3]) {
		t.Error("a fingerprint is that of its secret and key, and of no other")
	}
}

func TestKeyringShowsNoKey(t *testing.T) {
	t.Parallel()
	text := NewKey()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	k := ring(t, text)
	holder := struct{ keys *Keyring }{k}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", k, *k, holder)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("keys", "ring", k, "value", *k)
	data, err := json.Marshal([]any{k, *k})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	decimal := make([]string, 8)
	for i := range decimal {
		decimal[i] = strconv.Itoa(int(raw[i]))
	}
	for _, leak := range []string{text, string(raw), fmt.Sprintf("%x", raw), strings.Join(decimal, " "), strings.Join(decimal, ", ")} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in %s", leak, out.String())
		}
	}
}
