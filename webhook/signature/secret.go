package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// Prefixes of keys in text form.
const (
	prefixSymmetric = "whsec_"
	prefixPrivate   = "whsk_"
	prefixPublic    = "whpk_"
)

// Bounds of a symmetric key, in bytes after decoding, as Standard Webhooks sets them.
const (
	minSecret = 24
	maxSecret = 64
)

const masked = "[secret]"

// Secret is a key that signs. It prints, logs and marshals as a mask, whatever the verb or encoder; [Secret.Reveal] alone shows it.
// The zero Secret signs nothing and is refused by [Endpoint] checks. It is safe for concurrent use.
type Secret struct {
	// key is a function because fmt prints one as an address. Of a Secret in another struct's unexported field, where it cannot call the
	// methods below, fmt would print bytes, and for some verbs what a pointer points to.
	key func() signingKey
}

func newSecret(key signingKey) Secret { return Secret{func() signingKey { return key }} }

// signingKey holds one of the two.
type signingKey struct {
	symmetric []byte
	private   ed25519.PrivateKey
}

// ParseSecret reads whsec_ and base64 of 24 to 64 bytes (HMAC-SHA256), or whsk_ and base64 of an ed25519 private key (64 bytes) or its
// seed (32 bytes). Errors never hold the text.
func ParseSecret(text string) (Secret, error) {
	if encoded, ok := strings.CutPrefix(text, prefixSymmetric); ok {
		key, err := decodeKey(encoded)
		if err != nil {
			return Secret{}, fmt.Errorf("secret %s...: %w", prefixSymmetric, err)
		}
		if len(key) < minSecret || len(key) > maxSecret {
			return Secret{}, fmt.Errorf("secret %s... decodes to %d bytes: use %d to %d random bytes", prefixSymmetric, len(key), minSecret, maxSecret)
		}
		return newSecret(signingKey{symmetric: key}), nil
	}
	if encoded, ok := strings.CutPrefix(text, prefixPrivate); ok {
		key, err := decodeKey(encoded)
		if err != nil {
			return Secret{}, fmt.Errorf("secret %s...: %w", prefixPrivate, err)
		}
		return parsePrivate(key)
	}
	return Secret{}, fmt.Errorf("secret of %d characters: it must begin with %s (HMAC-SHA256) or %s (ed25519)", len(text), prefixSymmetric, prefixPrivate)
}

func parsePrivate(key []byte) (Secret, error) {
	switch len(key) {
	case ed25519.SeedSize:
		return newSecret(signingKey{private: ed25519.NewKeyFromSeed(key)}), nil
	case ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
		if !bytes.Equal(private, key) {
			return Secret{}, fmt.Errorf("secret %s...: its public half does not belong to its private half: generate a new key", prefixPrivate)
		}
		return newSecret(signingKey{private: private}), nil
	}
	return Secret{}, fmt.Errorf("secret %s... decodes to %d bytes: an ed25519 key has %d, its seed %d", prefixPrivate, len(key), ed25519.PrivateKeySize, ed25519.SeedSize)
}

// decodeKey reads standard base64 with padding. The decoder's own error is dropped: it may quote the key.
func decodeKey(encoded string) ([]byte, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return nil, errors.New("not valid base64: use the standard alphabet with padding")
	}
	return key, nil
}

// NewSecret returns a new symmetric key of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, 32)
	rand.Read(key) // never fails: it ends the process instead
	return newSecret(signingKey{symmetric: key})
}

// IsZero reports whether s holds no key.
func (s Secret) IsZero() bool { return s.key == nil }

// Reveal returns the text that [ParseSecret] reads. Show it once, when the key is made, and to nobody else.
func (s Secret) Reveal() string {
	switch {
	case s.key == nil:
		return ""
	case s.key().private != nil:
		return prefixPrivate + base64.StdEncoding.EncodeToString(s.key().private)
	}
	return prefixSymmetric + base64.StdEncoding.EncodeToString(s.key().symmetric)
}

// VerifyKey returns what a receiver needs to check signatures: the whpk_ public key of an ed25519 secret. A symmetric secret has no public
// half; the receiver needs the secret itself, and VerifyKey is empty.
func (s Secret) VerifyKey() string {
	if s.key == nil || s.key().private == nil {
		return ""
	}
	return prefixPublic + base64.StdEncoding.EncodeToString(s.key().private[ed25519.SeedSize:])
}

// Equal reports whether both are the same key, in constant time.
func (s Secret) Equal(other Secret) bool {
	a, b := s.fingerprint(), other.fingerprint()
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (s Secret) fingerprint() [sha256.Size]byte { return sha256.Sum256([]byte(s.Reveal())) }

// sign returns one entry of the signature list, over head and body as one.
func (s Secret) sign(head, body []byte) string {
	key := s.key()
	if key.private != nil {
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key.private, slices.Concat(head, body)))
	}
	entry := append(make([]byte, 0, 48), "v1,"...)
	return string(base64.StdEncoding.AppendEncode(entry, sum(key.symmetric, head, body)))
}

// sum needs no copy of the body to put something before it.
func sum(key, head, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(head)
	mac.Write(body)
	return mac.Sum(nil)
}

// String returns a mask.
func (s Secret) String() string { return masked }

// GoString returns a mask.
func (s Secret) GoString() string { return masked }

// Format writes a mask for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// LogValue returns a mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// MarshalText returns a mask, so that no encoder shows the key. What it writes cannot be read back.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// UnmarshalText reads what [ParseSecret] reads, so that configuration can hold secrets.
func (s *Secret) UnmarshalText(text []byte) error {
	parsed, err := ParseSecret(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
