package endpointtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

// NothingInTheClear takes an endpoint full of secrets through its life, and looks for them in dump, which returns all bytes that the store has
// written by then.
func NothingInTheClear(t *testing.T, store endpoints.Store, dump func(t *testing.T) []byte) {
	t.Helper()
	keyText := endpoints.NewKey()
	keys, err := endpoints.ParseKeyring(keyText)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := keyPair(t)
	old, current, given := signature.NewSecret(), signature.NewSecret(), signature.NewSecret()
	e := webhook.Endpoint{
		ID: "in-the-clear", Tenant: "tenant-in-the-clear", URL: "https://host-in-the-clear.example.com/path-is-secret?query=is-secret",
		Headers: map[string]string{"X-Api-Key": "header-is-secret"}, Secrets: []signature.Secret{current},
		Retiring: []webhook.RetiringSecret{{Secret: old, Until: time.Now().Add(time.Hour)}}, TLS: webhook.TLS{Certificate: certificate, Key: key},
		Metadata: map[string]string{"note": "metadata-in-the-clear"},
	}
	if _, err := registry.Add(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.RotateSecret(t.Context(), e.ID, given, time.Hour); err != nil {
		t.Fatal(err)
	}
	written := dump(t)
	for _, clear := range []string{"in-the-clear", "tenant-in-the-clear", "https://host-in-the-clear.example.com", "metadata-in-the-clear", "BEGIN CERTIFICATE"} {
		if !bytes.Contains(written, []byte(clear)) {
			t.Errorf("the dump does not hold %q: it would not show secrets either", clear)
		}
	}
	secret := []string{"path-is-secret", "is-secret", "X-Api-Key", "header-is-secret", keyText}
	for _, s := range []signature.Secret{old, current, given} {
		_, encoded, _ := strings.Cut(s.Reveal(), "_")
		secret = append(secret, s.Reveal(), encoded)
	}
	for line := range strings.Lines(key) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-") {
			secret = append(secret, line)
		}
	}
	if len(secret) < 12 {
		t.Fatalf("%d secrets: the key has no lines", len(secret))
	}
	for _, s := range secret {
		forms := [][]byte{[]byte(s), []byte(hex.EncodeToString([]byte(s))), []byte(base64.StdEncoding.EncodeToString([]byte(s)))}
		if raw, err := base64.StdEncoding.DecodeString(s); err == nil && len(raw) > 15 {
			forms = append(forms, raw, []byte(hex.EncodeToString(raw)))
		}
		for _, form := range forms {
			if bytes.Contains(written, form) {
				t.Errorf("the store holds %q as %q", s, form)
			}
		}
	}
}

func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
