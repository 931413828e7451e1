package signature_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// A receiver that checks what it gets before it acts.
func ExampleVerifier() {
	secret := signature.NewSecret() // made once and shown to the receiver's owner

	verifier, err := signature.NewVerifier(secret.Reveal())
	if err != nil {
		panic(err)
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if err := verifier.Verify(r.Header, body, time.Now()); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Printf("%s: %s\n", r.Header.Get(signature.HeaderID), body)
		w.WriteHeader(http.StatusNoContent)
	}

	server := httptest.NewServer(http.HandlerFunc(receive))
	defer server.Close()

	// A sender for this machine: loopback is closed to deliveries unless it is allowed by name.
	guard, err := webhook.NewGuard(webhook.GuardConfig{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		panic(err)
	}
	endpoint := webhook.Endpoint{ID: "shop", URL: server.URL + "/hooks", AllowHTTP: true, Secrets: []signature.Secret{secret}}
	endpoints, err := webhook.NewStatic(guard, endpoint)
	if err != nil {
		panic(err)
	}
	sender, err := webhook.NewSender(webhook.Config{Endpoints: endpoints, Guard: guard})
	if err != nil {
		panic(err)
	}
	defer sender.Close()

	response, err := sender.Send(context.Background(), endpoint, webhook.Delivery{ID: "evt_1", Body: []byte(`{"paid":true}`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(response.Status, response.Phase)
	// Output:
	// evt_1: {"paid":true}
	// 204 answered
}
