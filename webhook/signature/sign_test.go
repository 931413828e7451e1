package signature

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oracle "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Secret, ID, Signature string
		Timestamp             int64
		Body                  []byte `json:"body_base64"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 4 {
		t.Fatalf("%d vectors, want 4", len(vectors))
	}
	for _, v := range vectors {
		at := time.Unix(v.Timestamp, 0)
		got, err := Sign([]Secret{mustSecret(t, v.Secret)}, v.ID, at, v.Body)
		if err != nil || got != v.Signature {
			t.Errorf("%s: signed %q, %v; want %q", v.ID, got, err, v.Signature)
		}
		verifier, err := NewVerifier(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(signedHeader(v.ID, at, v.Signature), v.Body, at); err != nil {
			t.Errorf("%s: %v", v.ID, err)
		}
	}
}

// The vector of Svix's own tests; ed25519 signatures are deterministic.
const (
	ed25519Private   = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	ed25519Public    = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	ed25519Body      = `{"test": 2432232314}`
	ed25519Signature = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

func TestEd25519Vector(t *testing.T) {
	t.Parallel()
	secret, at := mustSecret(t, ed25519Private), time.Unix(1614265330, 0)
	if got := secret.VerifyKey(); got != ed25519Public {
		t.Errorf("public key %q, want %q", got, ed25519Public)
	}
	got, err := Sign([]Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(ed25519Body))
	if err != nil || got != ed25519Signature {
		t.Fatalf("signed %q, %v; want %q", got, err, ed25519Signature)
	}
	verifier, err := NewVerifier(ed25519Public)
	if err != nil {
		t.Fatal(err)
	}
	header := signedHeader("msg_p5jXN8AQM9LWM0D4loKWxJek", at, got)
	if err := verifier.Verify(header, []byte(ed25519Body), at); err != nil {
		t.Error(err)
	}
	if err := verifier.Verify(header, []byte(ed25519Body+" "), at); err == nil {
		t.Error("another body was accepted")
	}
	seed := "whsk_" + base64.StdEncoding.EncodeToString(secret.key().private.Seed())
	if !mustSecret(t, seed).Equal(secret) {
		t.Error("the seed gives another key")
	}
}

// TestAgainstOracle lets the reference library and ours check each other.
func TestAgainstOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), minSecret, maxSecret).Draw(t, "key")
		text := prefixSymmetric + base64.StdEncoding.EncodeToString(key)
		id := rapid.StringMatching(`[!-\-/-~]{1,60}`).Draw(t, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		now := time.Now()

		reference, err := oracle.NewWebhook(text)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := ParseSecret(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := secret.Reveal(); got != text {
			t.Fatalf("reveal %q, want %q", got, text)
		}
		ours, err := Sign([]Secret{NewSecret(), secret}, id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		if err := reference.Verify(body, signedHeader(id, now, ours)); err != nil {
			t.Fatalf("the reference refuses our signature: %v", err)
		}
		theirs, err := reference.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := NewVerifier(NewSecret().Reveal(), text)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(signedHeader(id, now, theirs), body, now); err != nil {
			t.Fatalf("we refuse the reference's signature: %v", err)
		}
	})
}

func TestRotation(t *testing.T) {
	t.Parallel()
	current, old, public := NewSecret(), NewSecret(), mustSecret(t, ed25519Private)
	body := []byte("body")
	list, err := Sign([]Secret{current, old, public}, "e1", noon, body)
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, entry := range strings.Split(list, " ") {
		version, _, _ := strings.Cut(entry, ",")
		versions = append(versions, version)
	}
	if diff := cmp.Diff([]string{"v1", "v1", "v1a"}, versions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, key := range []string{current.Reveal(), old.Reveal(), public.VerifyKey()} {
		verifier, err := NewVerifier(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(signedHeader("e1", noon, list), body, noon); err != nil {
			t.Errorf("a receiver with one of the keys refuses: %v", err)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	good := []Secret{NewSecret()}
	for name, c := range map[string]struct {
		secrets []Secret
		id      string
	}{
		"no secret":     {nil, "e1"},
		"empty secret":  {[]Secret{{}}, "e1"},
		"empty id":      {good, ""},
		"dot in id":     {good, "a.b"},
		"space in id":   {good, "a b"},
		"newline in id": {good, "a\nb"},
		"non-ASCII id":  {good, "é"},
		"long id":       {good, strings.Repeat("a", maxID+1)},
	} {
		if got, err := Sign(c.secrets, c.id, noon, nil); err == nil {
			t.Errorf("%s: signed %q", name, got)
		}
	}
}

func signedHeader(id string, at time.Time, signature string) http.Header {
	h := http.Header{}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp(at))
	h.Set(HeaderSignature, signature)
	return h
}

func mustSecret(t testing.TB, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var noon = time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC)
