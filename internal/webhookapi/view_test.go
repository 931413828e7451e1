package webhookapi_test

import (
	"testing"
	"time"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/signature"
)

// A secret whose window is over is not shown as one that signs.
func TestRetiredSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	open := now.Add(time.Hour)
	e := endpoints.Entry{Endpoint: webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: []signature.Secret{signature.NewSecret()}, Retiring: []webhook.RetiringSecret{
		{Secret: signature.NewSecret(), Until: now.Add(-time.Second)}, {Secret: signature.NewSecret(), Until: open},
	}}}
	if got := webhookapi.Show(e).Signing; got.Keys != 2 || len(got.RetiringUntil) != 1 || !got.RetiringUntil[0].Equal(open) {
		t.Errorf("shown %+v, want two of which one retires", got)
	}
}
