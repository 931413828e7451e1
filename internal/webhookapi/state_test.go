package webhookapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook/signature"
)

// An endpoint is paused, disabled and enabled, with the reason that was given.
func TestStates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(`{"id":"shop","url":"https://example.com/"}`)
	for _, step := range []struct{ path, body, state, reason string }{
		{"pause", `{"reason":"maintenance"}`, "paused", "maintenance"},
		{"pause", ``, "paused", ""},
		{"disable", `{"reason":"unpaid"}`, "disabled", "unpaid"},
		{"disable", `{"reason":"other"}`, "disabled", "unpaid"},
		{"enable", ``, "active", ""},
		{"disable", ``, "disabled", webhookapi.ByOperator},
		{"enable", `{}`, "active", ""},
	} {
		var e webhookapi.Endpoint
		r.post("/v1/endpoints/shop/"+step.path, step.body).is(http.StatusOK).into(&e)
		if e.State != step.state || e.Reason != step.reason || e.Since.IsZero() {
			t.Errorf("%s %s: %s, reason %q, since %s", step.path, step.body, e.State, e.Reason, e.Since)
		}
	}
	for _, path := range []string{"pause", "disable", "enable", "rotate-secret", "test"} {
		r.post("/v1/endpoints/nobody/"+path, "").refuses(404, "", "no endpoint")
		r.post("/v1/endpoints/shop/"+path, `{"colour":"red"}`).is(http.StatusUnprocessableEntity)
	}
	r.post("/v1/endpoints/shop/pause", `{"reason":"a\nb"}`).refuses(422, "reason", "one line")
	r.post("/v1/endpoints/shop/pause", `{"reason":"`+strings.Repeat("x", 257)+`"}`).refuses(422, "reason", "at most")
}

// A new secret is shown once; the old one signs beside it for the window.
func TestRotateSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.add(`{"id":"shop","url":"https://example.com/"}`)
	var second, third, fourth webhookapi.NewEndpoint
	r.post("/v1/endpoints/shop/rotate-secret", "").is(200).into(&second)
	if second.Secret == first.Secret || second.Signing.Keys != 2 || len(second.Signing.RetiringUntil) != 1 {
		t.Errorf("after the first: %+v", second.Signing)
	}
	if left := time.Until(second.Signing.RetiringUntil[0]); left > 24*time.Hour || left < 23*time.Hour {
		t.Errorf("the old secret signs for %s more, want a day", left)
	}
	own := signature.NewSecret().Reveal()
	r.post("/v1/endpoints/shop/rotate-secret", `{"secret":"`+own+`","window":"1h"}`).is(200).into(&third)
	if third.Secret != own || third.Signing.Keys != 3 {
		t.Errorf("after the second: %q, %+v", third.Secret, third.Signing)
	}
	r.post("/v1/endpoints/shop/rotate-secret", `{"window":"0s"}`).is(200).into(&fourth)
	if fourth.Signing.Keys != 1 {
		t.Errorf("after the third: %+v", fourth.Signing)
	}
	for body, field := range map[string]string{
		`{"window":"-1h"}`: "window", `{"window":"31d"}`: "window", `{"window":"1"}`: "window", `{"secret":"whsec_x"}`: "secret",
		`{"secret":"` + fourth.Secret + `"}`: "secret",
	} {
		r.post("/v1/endpoints/shop/rotate-secret", body).refuses(422, field, "")
	}
	r.add(`{"id":"other","url":"https://example.com/"}`)
	r.post("/v1/endpoints/other/rotate-secret", `{"secret":"`+fourth.Secret+`"}`).refuses(409, "", "another endpoint")
}

// An ed25519 secret has a public half, which is shown.
func TestVerifyKeyIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const seed = "whsk_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	made := r.add(`{"id":"shop","url":"https://example.com/","secret":"` + seed + `"}`)
	secret := got(signature.ParseSecret(seed))(t)
	if len(made.Signing.VerifyKeys) != 1 || made.Signing.VerifyKeys[0] != secret.VerifyKey() {
		t.Errorf("verify keys %v, want %s", made.Signing.VerifyKeys, secret.VerifyKey())
	}
}
