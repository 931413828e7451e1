package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

// selfSigned returns a certificate and its key as PEM.
func selfSigned(t *testing.T) (certificate, key string) {
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

func TestCheckTLS(t *testing.T) {
	t.Parallel()
	certificate, key := selfSigned(t)
	other, otherKey := selfSigned(t)
	broken := strings.Replace(certificate, "\nM", "\n*", 1)
	for _, c := range []struct {
		name string
		tls  TLS
		want string // in the error; empty means accepted
	}{
		{"nothing", TLS{}, ""},
		{"mutual", TLS{Certificate: certificate, Key: key}, ""},
		{"chain", TLS{Certificate: certificate + other, Key: key}, ""},
		{"with text around it", TLS{Certificate: "# ours\n" + certificate, Key: "\n" + key}, ""},
		{"authorities", TLS{RootCAs: certificate + other}, ""},
		{"no key", TLS{Certificate: certificate}, "go together"},
		{"no certificate", TLS{Key: key}, "go together"},
		{"another's key", TLS{Certificate: certificate, Key: otherKey}, "does not belong"},
		{"certificate for a key", TLS{Certificate: certificate, Key: certificate}, "tls key"},
		{"garbled key", TLS{Certificate: certificate, Key: strings.Replace(key, "M", "N", 3)}, "tls key"},
		{"no PEM", TLS{Certificate: "hello", Key: key}, "no certificate in it"},
		{"authorities without PEM", TLS{RootCAs: "hello"}, "tls root_cas: no certificate in it"},
		{"key among the certificates", TLS{Certificate: certificate + key, Key: key}, "block 2 is no certificate"},
		{"key among the authorities", TLS{RootCAs: key}, "block 1 is no certificate"},
		{"garbled block", TLS{RootCAs: certificate + broken}, "1 of its 2 blocks"},
		{"certificate that is none", TLS{RootCAs: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hello")}))}, "block 1 cannot be read"},
		{"large", TLS{RootCAs: strings.Repeat(certificate, 200)}, "use PEM of at most"},
	} {
		_, err := defaultGuard.Check(Endpoint{ID: "e1", URL: "https://example.com/hook", Secrets: []signature.Secret{signature.NewSecret()}, TLS: c.tls})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
		if err == nil {
			continue
		}
		for line := range strings.Lines(key + otherKey) {
			if line = strings.TrimSpace(line); len(line) > 20 && !strings.HasPrefix(line, "-") && strings.Contains(err.Error(), line) {
				t.Errorf("%s: the error holds a line of a key", c.name)
			}
		}
	}
	plain := Endpoint{ID: "e1", URL: "HTTP://example.com/hook", AllowHTTP: true, Secrets: []signature.Secret{signature.NewSecret()}, TLS: TLS{RootCAs: certificate}}
	if _, err := defaultGuard.Check(plain); err == nil || !strings.Contains(err.Error(), "the url is http") {
		t.Errorf("tls for http: %v", err)
	}
}
