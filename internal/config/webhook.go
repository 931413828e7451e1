package config

import (
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// Webhook configures the kind webhook.deliver.
type Webhook struct {
	Default    EndpointDefault     `key:"default"`
	Breaker    Breaker             `key:"breaker" defaults:"failure_percent=80 slow_percent=80 window=10m min_calls=5 open=5m"`
	AllowCIDRs []string            `key:"allow_cidrs" doc:"Networks that deliveries may reach although they are not public, for example 10.1.0.0/16."`
	Ports      []int               `key:"ports" default:"80,443,8443" doc:"Ports that deliveries may use."`
	Endpoints  map[string]Endpoint `key:"endpoints" inherit:"webhook.default" doc:"One endpoint, by its id. What is unset is taken from webhook.default."`
}

// EndpointDefault is what endpoints have unless they say otherwise.
type EndpointDefault struct {
	ClientErrors string          `key:"client_errors" default:"retry" enum:"retry,reject" doc:"What 400, 401, 403, 404 and the like mean: retry, since customers' endpoints misbehave, or reject at once."`
	Timeout      time.Duration   `key:"timeout" default:"26s" min:"1ms" max:"10m" doc:"The longest that one delivery may take, the response's body included. Up to 26s, at most 15s of it may pass before the first byte."`
	Concurrency  int             `key:"concurrency" default:"3" min:"1" doc:"Deliveries at once to one endpoint."`
	Rate         float64         `key:"rate" default:"0" min:"0" max:"1e6" doc:"Deliveries per second to one endpoint. 0: no limit."`
	Burst        int             `key:"burst" default:"1" min:"1" doc:"Deliveries that may come at once where a rate is set."`
	Schedule     schedule.Policy `key:"schedule" default:"webhook" doc:"Delay between attempts, in the forms of kinds.<name>.backoff. A list of n delays makes n+1 attempts."`
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
	Schedule     schedule.Policy   `key:"schedule" doc:"As in webhook.default."`
	AllowHTTP    bool              `key:"allow_http" doc:"Permits a URL without TLS."`
}
