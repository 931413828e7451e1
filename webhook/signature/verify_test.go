package signature

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	secret, body := NewSecret(), []byte(`{"a":1}`)
	signature, err := Sign([]Secret{secret}, "e1", noon, body)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := NewVerifier(secret.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	type m = func(http.Header)
	for _, c := range []struct {
		name   string
		change m
		body   string
		now    time.Time
		want   error
	}{
		{"as sent", nil, `{"a":1}`, noon, nil},
		{"at the tolerance", nil, `{"a":1}`, noon.Add(Tolerance), nil},
		{"too old", nil, `{"a":1}`, noon.Add(Tolerance + time.Second), ErrTimestamp},
		{"from the future", nil, `{"a":1}`, noon.Add(-Tolerance - time.Second), ErrTimestamp},
		{"re-serialised body", nil, `{"a": 1}`, noon, ErrSignature},
		{"empty body", nil, "", noon, ErrSignature},
		{"other id", func(h http.Header) { h.Set(HeaderID, "e2") }, `{"a":1}`, noon, ErrSignature},
		{"other time", func(h http.Header) { h.Set(HeaderTimestamp, timestamp(noon.Add(time.Second))) }, `{"a":1}`, noon, ErrSignature},
		{"time with a sign", func(h http.Header) { h.Set(HeaderTimestamp, "+"+timestamp(noon)) }, `{"a":1}`, noon, ErrBadHeaders},
		{"time not a number", func(h http.Header) { h.Set(HeaderTimestamp, "now") }, `{"a":1}`, noon, ErrBadHeaders},
		{"huge time", func(h http.Header) { h.Set(HeaderTimestamp, "9223372036854775807") }, `{"a":1}`, noon, ErrTimestamp},
		{"no id", func(h http.Header) { h.Del(HeaderID) }, `{"a":1}`, noon, ErrBadHeaders},
		{"two ids", func(h http.Header) { h.Add(HeaderID, "e1") }, `{"a":1}`, noon, ErrBadHeaders},
		{"id with a dot", func(h http.Header) { h.Set(HeaderID, "e.1") }, `{"a":1}`, noon, ErrBadHeaders},
		{"no time", func(h http.Header) { h.Del(HeaderTimestamp) }, `{"a":1}`, noon, ErrBadHeaders},
		{"no signature", func(h http.Header) { h.Del(HeaderSignature) }, `{"a":1}`, noon, ErrBadHeaders},
		{"other version", func(h http.Header) { h.Set(HeaderSignature, "v2"+signature[2:]) }, `{"a":1}`, noon, ErrSignature},
		{"asymmetric claim", func(h http.Header) { h.Set(HeaderSignature, "v1a"+signature[2:]) }, `{"a":1}`, noon, ErrSignature},
		{"cut signature", func(h http.Header) { h.Set(HeaderSignature, signature[:20]) }, `{"a":1}`, noon, ErrSignature},
		{"empty entry", func(h http.Header) { h.Set(HeaderSignature, "v1,") }, `{"a":1}`, noon, ErrSignature},
		{"among others", func(h http.Header) { h.Set(HeaderSignature, "v9,AAAA x "+signature) }, `{"a":1}`, noon, nil},
	} {
		header := signedHeader("e1", noon, signature)
		if c.change != nil {
			c.change(header)
		}
		if err := verifier.Verify(header, []byte(c.body), c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestNewVerifierRefuses(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"no key":           nil,
		"a private key":    {ed25519Private},
		"short public key": {"whpk_AAAA"},
		"bad base64":       {"whpk_*"},
		"unknown prefix":   {NewSecret().Reveal(), "secret"},
	} {
		if _, err := NewVerifier(keys...); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
