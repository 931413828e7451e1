package webhook

import (
	"net/http"
	"testing"
)

// BenchmarkSend is one signed delivery of 1 KB to a receiver on this machine, the receiver's own work included.
func BenchmarkSend(b *testing.B) {
	rec := newReceiver(b, status(http.StatusNoContent))
	s, e := newSender(b, Config{}), endpointAt("e", rec.URL+"/hook")
	d := Delivery{ID: "e1", Body: make([]byte, 1<<10)}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := s.Send(b.Context(), e, d); err != nil || r.Status != http.StatusNoContent {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkPrepare is what a delivery costs before the first byte is sent: URL and header checks and the signature.
func BenchmarkPrepare(b *testing.B) {
	s, e := newSender(b, Config{}), endpointAt("e", "https://hooks.example.com/caisson/42")
	d := Delivery{ID: "e1", Body: make([]byte, 1<<10)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.cfg.Guard.checkURL(e.URL, false); err != nil {
			b.Fatal(err)
		}
		if _, err := s.header(e, d); err != nil {
			b.Fatal(err)
		}
	}
}
