package webhookapi_test

import (
	"testing"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
)

// Whoever may change a URL has no stored credential sent to a host of his own.
func TestCredentialsDoNotMove(t *testing.T) {
	t.Parallel()
	for body, fine := range map[string]bool{
		`{"url":"https://evil.example.net/"}`:                                                                   false,
		`{"url":"https://shop.example.com:8443/hooks"}`:                                                         false,
		`{"url":"http://shop.example.com/hooks","allow_http":true}`:                                             false,
		`{"url":"https://evil.example.net/","headers":{"X-New":"1"},"tls":null}`:                                false,
		`{"url":"https://evil.example.net/","headers":{"x-api-key":"again"}}`:                                   false,
		`{"url":"https://evil.example.net/","headers":null}`:                                                    false,
		`{"url":"https://evil.example.net/","headers":null,"tls":{"certificate":"c"}}`:                          false,
		`{"url":"https://evil.example.net/","headers":{"x-api-key":"k-98765"},"tls":{"key":"k"}}`:               true,
		`{"url":"https://new.example.net/","headers":{"X-Api-Key":null},"tls":{"certificate":null,"key":null}}`: true,
		`{"url":"https://new.example.net/","headers":null,"tls":null}`:                                          true,
		`{"url":"https://SHOP.example.com:443/v2?x=y"}`:                                                         true,
		`{"rate":1}`: true,
	} {
		e := webhook.Endpoint{
			ID: "shop", URL: "https://shop.example.com/hooks", Headers: map[string]string{"X-Api-Key": "k-98765"}, TLS: webhook.TLS{Certificate: "c", Key: "k"},
		}
		change, err := webhookapi.ParseChange([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if err := change.Apply(&e); (err == nil) != fine {
			t.Errorf("%s: %v", body, err)
		}
	}
	e := webhook.Endpoint{ID: "free", URL: "https://shop.example.com/hooks"}
	change, err := webhookapi.ParseChange([]byte(`{"url":"https://new.example.net/"}`))
	if err == nil {
		err = change.Apply(&e)
	}
	if err != nil {
		t.Errorf("without credentials: %v", err)
	}
}

func TestPatchRefusesToMoveCredentials(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(shop)
	r.do(request{method: "PATCH", path: "/v1/endpoints/shop", body: `{"url":"https://evil.example.net/"}`}).refuses(422, "url", "in the same change: header X-Api-Key")
	r.do(request{method: "PATCH", path: "/v1/endpoints/shop", body: `{"tenant":"other"}`}).refuses(422, "tenant", "delete the endpoint and add it again")
	if kept := got(r.registry.Get(t.Context(), "shop"))(t); kept.URL != "https://shop.example.com/hooks/tok_3f9a?key=s3cr3t" || kept.Tenant != "acme" {
		t.Errorf("kept %q of %s", kept.URL, kept.Tenant)
	}
	r.do(request{method: "PATCH", path: "/v1/endpoints/shop", body: `{"url":"https://new.example.net/","headers":{"X-Api-Key":"k-2"}}`}).is(200)
}
