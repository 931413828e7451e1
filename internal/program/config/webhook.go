package config

import (
	"os"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// Webhook configures the kind webhook.deliver.
type Webhook struct {
	Default    EndpointDefault     `key:"default"`
	Breaker    Breaker             `key:"breaker"`
	AllowCIDRs []string            `key:"allow_cidrs" doc:"Networks that deliveries may reach although they are not public, for example 10.1.0.0/16."`
	Ports      []int               `key:"ports" doc:"Ports that deliveries may use, in place of those usual ones."`
	Endpoints  map[string]Endpoint `key:"endpoints" inherit:"webhook.default" doc:"One endpoint, by its id. What is unset is taken from webhook.default."`

	Registry          string        `key:"registry" default:"auto" enum:"auto,on,off" doc:"Endpoints that are kept in the store beside those of webhook.endpoints, and changed while workers run (worker endpoints, the API). auto: on where there is a store and a key is given."`
	SecretKey         Secret        `key:"secret_key" doc:"Key that seals what is secret of the registry's endpoints, the same for all programs: 32 random bytes in base64. worker endpoints new-key prints one."`
	SecretKeyFile     string        `key:"secret_key_file" doc:"File that holds it, instead of secret_key."`
	OldSecretKeys     []Secret      `key:"old_secret_keys" doc:"Keys that were replaced and that endpoints may still be sealed with. worker endpoints reseal makes them unnecessary."`
	OldSecretKeyFiles []string      `key:"old_secret_key_files" doc:"Files that hold such keys, one each, beside old_secret_keys."`
	EventRetention    time.Duration `key:"event_retention" min:"1h" max:"90d" doc:"How long published events are kept, so that they can be sent again."`
	AttemptLog        time.Duration `key:"attempt_log" min:"0s" max:"90d" doc:"How long each call to an endpoint is kept, for whoever asks what became of a delivery. 0s: calls are not logged."`
	MaxEvent          int           `key:"max_event" min:"1024" max:"67108864" doc:"The most bytes of an event's payload that the API and worker events publish take. Where the broker takes less, that holds."`
}

// HasRegistry reports whether endpoints are kept in the store.
func (c *Config) HasRegistry() bool {
	switch c.Webhook.Registry {
	case RegistryOff:
		return false
	case RegistryOn:
		return true
	}
	return c.Webhook.keyGiven() && c.ClaimStore() != StoreNone
}

// What webhook.registry can be.
const (
	RegistryAuto = "auto"
	RegistryOn   = "on"
	RegistryOff  = "off"
)

func (w Webhook) keyGiven() bool { return !w.SecretKey.IsZero() || w.SecretKeyFile != "" }

// registry checks what the registry needs.
func (v *validator) registry() {
	w := v.c.Webhook
	if !w.SecretKey.IsZero() && w.SecretKeyFile != "" {
		v.problem("webhook.secret_key_file", "webhook.secret_key is set, too: keep one")
	}
	v.keyFile("webhook.secret_key_file", w.SecretKeyFile)
	for _, file := range w.OldSecretKeyFiles {
		v.keyFile("webhook.old_secret_key_files", file)
	}
	switch {
	case w.Registry == RegistryOn && !w.keyGiven():
		v.problem("webhook.secret_key", "is missing, and the registry seals secrets with it: set it to what worker endpoints new-key prints, or set webhook.secret_key_file")
	case w.Registry == RegistryOn && v.c.ClaimStore() == StoreNone:
		v.problem("webhook.registry", "on needs a store, and there is none: %s", v.wayToStore())
	case w.Registry == RegistryAuto && w.keyGiven() && v.c.ClaimStore() == StoreNone:
		v.warn("webhook.registry", "is off although a key is given, since there is no store: %s", v.wayToStore())
	}
	if w.AttemptLog > 0 && w.AttemptLog < w.EventRetention {
		v.problem("webhook.attempt_log", "%s is shorter than webhook.event_retention, %s: what was delivered would look as if it never had been; make it as long, or 0s",
			schedule.FormatDuration(w.AttemptLog), schedule.FormatDuration(w.EventRetention))
	}
	if !v.c.HasRegistry() {
		for _, key := range []string{"webhook.event_retention", "webhook.attempt_log", "webhook.max_event", "webhook.old_secret_keys", "webhook.old_secret_key_files"} {
			if _, set := v.set(key); set {
				v.warn(key, "has no effect, since there is no registry (webhook.registry)")
			}
		}
	}
}

// keyFile warns of a key that everybody on the machine can read. Whether it can be read at all is seen by who does.
func (v *validator) keyFile(key, path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o007 != 0 {
		v.warn(key, "%s has mode %04o, so that everybody on this machine can use the key: make it 0600", path, info.Mode().Perm())
	}
}

// EndpointDefault is what endpoints have unless they say otherwise.
type EndpointDefault struct {
	ClientErrors string           `key:"client_errors" default:"retry" enum:"retry,reject" doc:"What 400, 401, 403, 404 and the like mean: retry, since customers' endpoints misbehave, or reject at once."`
	Timeout      time.Duration    `key:"timeout" min:"1ms" max:"10m" doc:"The longest that one delivery may take, the response's body included. Up to 26s, at most 15s of it may pass before the first byte."`
	Concurrency  int              `key:"concurrency" min:"1" doc:"Deliveries at once to one endpoint."`
	Rate         float64          `key:"rate" default:"0" min:"0" max:"1e6" doc:"Deliveries per second to one endpoint. 0: no limit."`
	Burst        int              `key:"burst" default:"1" min:"1" doc:"Deliveries that may come at once where a rate is set."`
	Backoff      schedule.Backoff `key:"backoff" default:"webhook" doc:"Delay between attempts, in the forms of kinds.<name>.backoff. A list of n delays makes n+1 attempts."`
}

// Endpoint is one receiver. [Load] completes it from the defaults.
type Endpoint struct {
	URL          SecretURL         `key:"url" doc:"Where to deliver. Required. https, unless allow_http is set."`
	Secrets      []Secret          `key:"secrets" doc:"Signing secrets (whsec_...): the current one first, then those still in rotation. Required."`
	Headers      map[string]Secret `key:"headers" doc:"Headers to add. In a variable: one Name: value per line."`
	ClientErrors string            `key:"client_errors" enum:"retry,reject" doc:"As in webhook.default."`
	Timeout      time.Duration     `key:"timeout" min:"1ms" max:"10m" doc:"As in webhook.default."`
	Concurrency  int               `key:"concurrency" min:"1" doc:"As in webhook.default."`
	Rate         float64           `key:"rate" min:"0" max:"1e6" doc:"As in webhook.default."`
	Burst        int               `key:"burst" min:"1" doc:"As in webhook.default."`
	Backoff      schedule.Backoff  `key:"backoff" doc:"As in webhook.default."`
	AllowHTTP    bool              `key:"allow_http" doc:"Permits a URL without TLS."`
}
