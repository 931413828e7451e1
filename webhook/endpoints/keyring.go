package endpoints

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caisson-go/caisson/webhook/signature"
)

// ErrNoKey means that an endpoint is sealed with a key that the [Keyring] does not hold. Add the key after the current one; `Registry.Reseal`
// makes it superfluous.
var ErrNoKey = errors.New("webhook endpoint is sealed with a key that is not given")

// keySize is that of AES-256.
const keySize = 32

// nonceSize is that of AES-GCM.
const nonceSize = 12

// Keyring holds the keys that seal what is secret of endpoints: the first seals, all of them open. AES-256-GCM with a random nonce; the
// endpoint's id is bound to it. It is safe for concurrent use.
//
// To replace a key, first give the new one to every process after the old one, then before it, then call [Registry.Reseal], then leave the old
// one out.
type Keyring struct{ keys []key }

// key does what one key can. It holds functions because fmt prints those as addresses.
type key struct {
	id          string
	aead        func() cipher.AEAD
	fingerprint func(signature.Secret) []byte
}

// ParseKeyring reads keys, one each: 32 random bytes in base64, the current one first. Errors never hold a key.
func ParseKeyring(keys ...string) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("webhook endpoint keys: none is given; make one with `openssl rand -base64 32`")
	}
	ring := &Keyring{}
	for i, text := range keys {
		raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
		if err != nil { // which may quote the key
			return nil, fmt.Errorf("webhook endpoint keys[%d]: not valid base64; use the standard alphabet with padding", i)
		}
		if len(raw) != keySize {
			return nil, fmt.Errorf("webhook endpoint keys[%d] has %d bytes: use %d random ones", i, len(raw), keySize)
		}
		k, err := newKey(raw)
		if err != nil {
			return nil, fmt.Errorf("webhook endpoint keys[%d]: %w", i, err)
		}
		if ring.find(k.id) != nil {
			return nil, fmt.Errorf("webhook endpoint keys[%d] is given twice: leave one out", i)
		}
		ring.keys = append(ring.keys, k)
	}
	return ring, nil
}

// NewKey returns a new key in the form that [ParseKeyring] reads.
func NewKey() string {
	raw := make([]byte, keySize)
	rand.Read(raw) // never fails: it ends the process instead
	return base64.StdEncoding.EncodeToString(raw)
}

func newKey(raw []byte) (key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	derive := func(what string, size int) []byte {
		out, e := hkdf.Expand(sha256.New, raw, "caisson webhook endpoint "+what, size)
		err = errors.Join(err, e)
		return out
	}
	id, marks := derive("key id", 8), derive("secret fingerprint", 32)
	return key{
		id:   hex.EncodeToString(id),
		aead: func() cipher.AEAD { return aead },
		fingerprint: func(s signature.Secret) []byte {
			mac := hmac.New(sha256.New, marks)
			_, _ = io.WriteString(mac, s.Reveal())
			return mac.Sum(nil)
		},
	}, err
}

// Current names the key that seals.
func (k *Keyring) Current() string { return k.keys[0].id }

func (k *Keyring) find(id string) *key {
	for i := range k.keys {
		if k.keys[i].id == id {
			return &k.keys[i]
		}
	}
	return nil
}

// seal encrypts what is secret of an endpoint.
func (k *Keyring) seal(endpoint string, plain []byte) []byte {
	return k.keys[0].aead().Seal(nil, nil, plain, bound(endpoint))
}

// open decrypts it.
func (k *Keyring) open(endpoint, keyID string, sealed []byte) ([]byte, error) {
	found := k.find(keyID)
	if found == nil {
		return nil, fmt.Errorf("%w: it needs key %q, here are %s: add that key after the current one (webhook.old_secret_keys)", ErrNoKey, keyID, k)
	}
	plain, err := found.aead().Open(nil, nil, sealed, bound(endpoint))
	if err != nil {
		return nil, fmt.Errorf("what is sealed with key %q does not open: it was changed, or belongs to another endpoint", keyID)
	}
	return plain, nil
}

// nonce is what the sealed part of a record begins with.
func nonce(r Record) string { return string(r.Sealed[:min(nonceSize, len(r.Sealed))]) }

// bound is the additional data of a seal.
func bound(endpoint string) []byte { return []byte("caisson webhook endpoint " + endpoint) }

// fingerprints tell equal secrets apart from others without telling them, under each key, so that two processes find the same secret for as
// long as they share one key.
func (k *Keyring) fingerprints(secrets []signature.Secret) [][]byte {
	var marks [][]byte
	for _, s := range secrets {
		for i := range k.keys {
			marks = append(marks, k.keys[i].fingerprint(s))
		}
	}
	return marks
}

// String names the keys by their ids.
func (k *Keyring) String() string {
	ids := make([]string, len(k.keys))
	for i := range k.keys {
		ids[i] = k.keys[i].id
	}
	return "keys " + strings.Join(ids, ", ")
}

// GoString is String.
func (k *Keyring) GoString() string { return k.String() }
