package webhookapi

import (
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Endpoint is an endpoint as it is shown: without what may be secret.
type Endpoint struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Origin is scheme and host of the URL. The rest of it can be a secret.
	Origin string   `json:"origin"`
	Events []string `json:"events"`
	// Headers are the names of its own headers, sorted.
	Headers      []string `json:"headers"`
	ClientErrors string   `json:"client_errors"`
	// Timeout is "" where the sender's holds.
	Timeout     string  `json:"timeout,omitempty"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"`
	// Backoff is "" where the kind's holds.
	Backoff   string            `json:"backoff,omitempty"`
	AllowHTTP bool              `json:"allow_http"`
	TLS       TLS               `json:"tls"`
	Ordered   bool              `json:"ordered"`
	Shared    bool              `json:"shared"`
	Adaptive  bool              `json:"adaptive"`
	State     string            `json:"state"`
	Reason    string            `json:"reason,omitempty"`
	Since     time.Time         `json:"since,omitzero"`
	Metadata  map[string]string `json:"metadata"`
	Signing   Signing           `json:"signing"`
	Created   time.Time         `json:"created"`
	Updated   time.Time         `json:"updated"`
	Revision  int64             `json:"revision"`
	// Unreadable says that it is sealed with a key that this program does not have: what is secret of it is not known, nor is its origin.
	Unreadable bool `json:"unreadable,omitempty"`
}

// TLS says what is set.
type TLS struct {
	Certificate bool `json:"certificate"`
	RootCAs     bool `json:"root_cas"`
}

// Signing says how deliveries are signed.
type Signing struct {
	// Keys is how many secrets sign, those in their rotation window among them.
	Keys int `json:"keys"`
	// VerifyKeys are the public halves of those that have one (whpk_...).
	VerifyKeys []string `json:"verify_keys,omitempty"`
	// RetiringUntil is when each secret in its rotation window signs no longer.
	RetiringUntil []time.Time `json:"retiring_until,omitempty"`
}

// Health is what workers saw of an endpoint.
type Health struct {
	// Failures since the last success.
	Failures     int64     `json:"failures"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	LastSuccess  time.Time `json:"last_success,omitzero"`
	LastFailure  time.Time `json:"last_failure,omitzero"`
}

// NewEndpoint is an endpoint with its current secret, which is shown this once.
type NewEndpoint struct {
	Endpoint
	Secret string `json:"secret"`
}

// Show returns e without what may be secret.
func Show(e endpoints.Entry) Endpoint {
	return Endpoint{
		ID: e.ID, Tenant: e.Tenant, Origin: origin(e.URL), Events: orEmpty(e.Events), Headers: orEmpty(slices.Sorted(maps.Keys(e.Headers))),
		ClientErrors: string(e.ClientErrors), Timeout: duration(e.Timeout), Concurrency: e.Concurrency, Rate: e.Rate, Backoff: policy(e.Backoff),
		AllowHTTP: e.AllowHTTP, TLS: TLS{Certificate: e.TLS.Certificate != "", RootCAs: e.TLS.RootCAs != ""},
		Ordered: e.Ordered, Shared: e.Shared, Adaptive: e.Adaptive,
		State: string(e.State), Reason: e.Reason, Since: e.Since.UTC(), Metadata: orNone(e.Metadata), Signing: signing(e.Endpoint, time.Now()),
		Created: e.Created.UTC(), Updated: e.Updated.UTC(), Revision: e.Revision, Unreadable: e.URL == "",
	}
}

// ShowNew returns e with its current secret. It is for the answer to whoever made it.
func ShowNew(e endpoints.Entry) NewEndpoint {
	n := NewEndpoint{Endpoint: Show(e)}
	if len(e.Secrets) > 0 {
		n.Secret = e.Secrets[0].Reveal()
	}
	return n
}

// ShowHealth returns h in the form of the API.
func ShowHealth(h endpoints.Health) Health {
	return Health{Failures: h.Failures, FailingSince: h.FailingSince.UTC(), LastSuccess: h.LastSuccess.UTC(), LastFailure: h.LastFailure.UTC()}
}

// signing tells of the secrets that sign now: the record keeps those whose window is over until it is written again.
func signing(e webhook.Endpoint, now time.Time) Signing {
	s := Signing{Keys: len(e.Secrets)}
	for _, secret := range e.Secrets {
		if key := secret.VerifyKey(); key != "" {
			s.VerifyKeys = append(s.VerifyKeys, key)
		}
	}
	for _, r := range e.Retiring {
		if !r.Until.After(now) {
			continue
		}
		s.Keys++
		if key := r.Secret.VerifyKey(); key != "" {
			s.VerifyKeys = append(s.VerifyKeys, key)
		}
		s.RetiringUntil = append(s.RetiringUntil, r.Until.UTC())
	}
	return s
}

func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return schedule.FormatDuration(d)
}

func policy(p schedule.Backoff) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNone(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
