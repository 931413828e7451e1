package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far webhook-timestamp may lie from the receiver's clock, in either direction.
const Tolerance = 5 * time.Minute

// Errors of [Verifier.Verify], usually wrapped. Match them with errors.Is.
var (
	// ErrBadHeaders means that one of the three headers is missing, given twice or malformed.
	ErrBadHeaders = errors.New("webhook headers missing or malformed")
	// ErrTimestamp means that the delivery is older or newer than [Tolerance] allows: a replayed request, or a clock that is wrong.
	ErrTimestamp = errors.New("webhook timestamp outside the tolerance: check both clocks")
	// ErrSignature means that no signature belongs to the body and one of the keys.
	ErrSignature = errors.New("no matching webhook signature")
)

// Verifier checks deliveries at the receiver. It is immutable and safe for concurrent use.
type Verifier struct {
	keys []verifyKey
}

type verifyKey struct {
	secret Secret            // for v1
	public ed25519.PublicKey // for v1a
}

// NewVerifier returns a verifier that accepts a delivery signed by any of keys: whsec_ secrets or whpk_ public keys. Give the old and
// the new one while keys rotate.
func NewVerifier(keys ...string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, errors.New("verifier: at least one key is required")
	}
	v := &Verifier{}
	for i, text := range keys {
		key, err := parseVerifyKey(text)
		if err != nil {
			return nil, fmt.Errorf("verifier: key %d: %w", i+1, err)
		}
		v.keys = append(v.keys, key)
	}
	return v, nil
}

func parseVerifyKey(text string) (verifyKey, error) {
	encoded, ok := strings.CutPrefix(text, prefixPublic)
	if !ok {
		secret, err := ParseSecret(text)
		if err == nil && secret.key().private != nil {
			return verifyKey{}, fmt.Errorf("a %s private key signs: give its %s public key", prefixPrivate, prefixPublic)
		}
		return verifyKey{secret: secret}, err
	}
	public, err := decodeKey(encoded)
	if err != nil {
		return verifyKey{}, fmt.Errorf("public key %s...: %w", prefixPublic, err)
	}
	if len(public) != ed25519.PublicKeySize {
		return verifyKey{}, fmt.Errorf("public key %s... decodes to %d bytes: an ed25519 public key has %d", prefixPublic, len(public), ed25519.PublicKeySize)
	}
	return verifyKey{public: public}, nil
}

// Verify returns nil if body is what the sender signed within [Tolerance] of now. Give it the raw body, before any decoding, and answer 2xx
// only afterwards. Whoever must not act twice also remembers webhook-id for longer than the sender retries.
func (v *Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	id, err := only(header, HeaderID)
	if err != nil {
		return err
	}
	if err := CheckID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrBadHeaders, err)
	}
	stamp, err := only(header, HeaderTimestamp)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != stamp {
		return fmt.Errorf("%w: %s is not a number of seconds", ErrBadHeaders, HeaderTimestamp)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > Tolerance || off < -Tolerance {
		return ErrTimestamp
	}
	list, err := only(header, HeaderSignature)
	if err != nil {
		return err
	}
	if !v.matches(signedHead(id, stamp), body, list) {
		return ErrSignature
	}
	return nil
}

// only returns the one value of a header.
func only(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" {
		return "", fmt.Errorf("%w: %s is there %d times", ErrBadHeaders, name, len(values))
	}
	return values[0], nil
}

func (v *Verifier) matches(head, body []byte, list string) bool {
	for entry := range strings.SplitSeq(list, " ") {
		version, encoded, _ := strings.Cut(entry, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue // an entry of a version that we do not know
		}
		for _, key := range v.keys {
			if key.matches(version, head, body, signature) {
				return true
			}
		}
	}
	return false
}

func (k verifyKey) matches(version string, head, body, signature []byte) bool {
	switch {
	case version == "v1" && k.public == nil:
		return hmac.Equal(signature, sum(k.secret.key().symmetric, head, body))
	case version == "v1a" && k.public != nil:
		return ed25519.Verify(k.public, slices.Concat(head, body), signature)
	}
	return false
}
