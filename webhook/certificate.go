package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPEM bounds each text of [TLS], in bytes: a chain or a bundle, not a system's store.
const maxPEM = 64 << 10

// IsZero reports whether nothing is set.
func (t TLS) IsZero() bool { return t == TLS{} }

// check refuses what no connection could be made with. Errors hold nothing of the texts.
func (t TLS) check(url string) error {
	if t.IsZero() {
		return nil
	}
	if strings.HasPrefix(strings.ToLower(url), "http:") {
		return errors.New("tls: the url is http, which uses none; make it https")
	}
	var errs []error
	for _, text := range []struct{ name, pem string }{{"certificate", t.Certificate}, {"key", t.Key}, {"root_cas", t.RootCAs}} {
		if len(text.pem) > maxPEM || !utf8.ValidString(text.pem) {
			return fmt.Errorf("tls %s of %d bytes: use PEM of at most %d", text.name, len(text.pem), maxPEM)
		}
	}
	switch {
	case (t.Certificate == "") != (t.Key == ""):
		errs = append(errs, errors.New("tls: certificate and key go together; give both or neither"))
	case t.Certificate != "":
		if err := checkCertificates("certificate", t.Certificate); err != nil {
			errs = append(errs, err)
		} else if _, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key)); err != nil {
			// Its own error is dropped: parsers quote what they cannot read.
			errs = append(errs, errors.New("tls key: it cannot be read, or does not belong to the certificate; give the first certificate's unencrypted private key as PEM"))
		}
	}
	if t.RootCAs != "" {
		errs = append(errs, checkCertificates("root_cas", t.RootCAs))
	}
	return errors.Join(errs...)
}

// checkCertificates wants certificates in PEM and nothing else: a key among them would be kept in the clear.
func checkCertificates(name, text string) error {
	n := 0
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		n++
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("tls %s: block %d is no certificate; give certificates only", name, n)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("tls %s: block %d cannot be read as a certificate", name, n)
		}
	}
	switch begun := strings.Count(text, "-----BEGIN "); { // Decode skips what it cannot read
	case n == 0:
		return fmt.Errorf("tls %s: no certificate in it; use PEM, which begins with -----BEGIN CERTIFICATE-----", name)
	case begun != n:
		return fmt.Errorf("tls %s: %d of its %d blocks are no valid PEM", name, begun-n, begun)
	}
	return nil
}
