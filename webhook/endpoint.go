package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/webhook/internal/match"
	"github.com/caisson-go/caisson/webhook/signature"
)

// Endpoint is one receiver of deliveries. It prints and logs as id and host only; its JSON leaves out what may be secret.
type Endpoint struct {
	// ID names the endpoint and is the destination of its jobs. Required; 1 to 128 lower-case letters, digits, '-' and '_', so that it is
	// its own normal form as a destination.
	ID string `json:"id"`
	// Tenant is whose events it gets. Empty means "default". 1 to 128 printable ASCII characters without spaces.
	Tenant string `json:"tenant,omitempty"`
	// URL to POST to. Required. See [Guard] for what is allowed.
	URL string `json:"-"`
	// Events are patterns of the event types that it gets: a type such as "invoice.paid", the beginning of types such as
	// "invoice.*", which selects "invoice.paid" and "invoice.item.added" but not "invoice", or "*". Empty means all.
	Events []string `json:"events,omitempty"`
	// Secrets sign each delivery, the current one first. At least one is required.
	Secrets []signature.Secret `json:"-"`
	// Retiring are secrets that were replaced and sign beside the others until their time.
	Retiring []RetiringSecret `json:"-"`
	// Headers are sent with each delivery beside our own. Reserved names are refused.
	Headers map[string]string `json:"-"`
	// ClientErrors says what a 4xx answer means. Default ClientErrorsRetry. 408, 410, 425 and 429 have meanings of their own.
	ClientErrors ClientErrors `json:"client_errors,omitempty"`
	// Timeout bounds one attempt, response body included. Zero means the sender's total timeout, which it cannot exceed.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Concurrency is how many deliveries to this endpoint may run at once in one worker. Zero means 3.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate is how many deliveries per second may start in one worker. Zero means no limit.
	Rate float64 `json:"rate,omitempty"`
	// Backoff gives the delays after failed attempts to this endpoint. Zero means the kind's. A list of n delays makes n+1 attempts; of any other
	// policy there are as many as the kind has.
	Backoff schedule.Backoff `json:"-"`
	// AllowHTTP permits a URL without TLS.
	AllowHTTP bool `json:"allow_http,omitempty"`
	// TLS holds a client certificate and the authorities of the receiver. The zero value means neither: the system's authorities.
	TLS TLS `json:"-"`
	// Ordered asks for the events one after the other, each once the one before was delivered or given up.
	Ordered bool `json:"ordered,omitempty"`
	// Shared lets all workers share what they know of it: breaker and rate. See docs/webhooks.md for what that costs.
	Shared bool `json:"shared,omitempty"`
	// Adaptive lets the concurrency find itself between 1 and Concurrency.
	Adaptive bool `json:"adaptive,omitempty"`
	// State says whether deliveries go out. Default StateActive.
	State State `json:"state,omitempty"`
	// Reason is why it is not active: one of the reasons of this package, or an operator's words. Empty while it is active.
	Reason string `json:"reason,omitempty"`
	// Since is when the state was set. Zero if nobody knows.
	Since time.Time `json:"since,omitzero"`
	// Metadata is the owner's own: at most 50 entries, 8 KiB in all. It is never sent.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// RetiringSecret is a secret in its rotation window.
type RetiringSecret struct {
	Secret signature.Secret
	// Until is when it stops signing.
	Until time.Time
}

// TLS is how the connection to one endpoint is made. All texts are PEM.
type TLS struct {
	// Certificate and Key are what we show the receiver (mutual TLS). Both or neither. Key is a secret.
	Certificate, Key string
	// RootCAs sign the receiver's certificate, in place of the sender's.
	RootCAs string
}

// State says whether deliveries to an endpoint go out.
type State string

// The states.
const (
	// StateActive delivers.
	StateActive State = "active"
	// StatePaused holds jobs until somebody enables the endpoint.
	StatePaused State = "paused"
	// StateDisabled is the same, said by us or by an operator, for a reason. With ReasonGone jobs are not held but go to the dead letters.
	StateDisabled State = "disabled"
)

// Reasons for which we disable an endpoint.
const (
	// ReasonGone: it answered 410.
	ReasonGone = "gone"
	// ReasonFailing: it had failures, and no success, for the length of its backoff.
	ReasonFailing = "failing"
)

// ClientErrors says what a 4xx answer means.
type ClientErrors string

// The meanings.
const (
	// ClientErrorsRetry fails the attempt: endpoints of customers answer 4xx in the middle of their own deployments.
	ClientErrorsRetry ClientErrors = "retry"
	// ClientErrorsReject gives the job up at once.
	ClientErrorsReject ClientErrors = "reject"
)

// DefaultTenant is the tenant of endpoints and events that name none.
const DefaultTenant = deliver.DefaultTenant

const (
	defaultConcurrency = 3
	maxEndpointID      = 128
)

// WithDefaults fills in what zero means.
func (e Endpoint) WithDefaults() Endpoint {
	if e.ClientErrors == "" {
		e.ClientErrors = ClientErrorsRetry
	}
	if e.Concurrency == 0 {
		e.Concurrency = defaultConcurrency
	}
	if e.Tenant == "" {
		e.Tenant = DefaultTenant
	}
	if e.State == "" {
		e.State = StateActive
	}
	return e
}

// Check returns e with its defaults filled in, or everything that is wrong with it.
func (g *Guard) Check(e Endpoint) (Endpoint, error) {
	e = e.WithDefaults()
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if err := checkEndpointID(e.ID); err != nil {
		errs = append(errs, err)
	}
	if _, err := g.checkURL(e.URL, e.AllowHTTP); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkTenant(e.Tenant), checkPatterns(e.Events), checkSecrets(e.Secrets, e.Retiring), checkHeaders(e.Headers),
		e.TLS.check(e.URL), e.State.Check(e.Reason), checkMetadata(e.Metadata))
	check(e.ClientErrors == ClientErrorsRetry || e.ClientErrors == ClientErrorsReject,
		"client_errors %q: use %q or %q", e.ClientErrors, ClientErrorsRetry, ClientErrorsReject)
	check(e.Timeout >= 0, "timeout %s: must be positive; 0 means the sender's total timeout", e.Timeout)
	check(e.Concurrency > 0, "concurrency %d: must be at least 1; 0 means %d", e.Concurrency, defaultConcurrency)
	check(e.Rate == 0 || e.Rate >= minRate && e.Rate <= maxRate, "rate %v: use %v to %v deliveries per second, or 0 for no limit", e.Rate, minRate, maxRate)
	if err := errors.Join(errs...); err != nil {
		return Endpoint{}, fmt.Errorf("endpoint %q: %w", e.ID, err)
	}
	return e, nil
}

// Bounds of a rate, within those of package pools. They catch values in the wrong unit.
const (
	minRate = 1e-6
	maxRate = 1e6
)

func checkEndpointID(id string) error {
	if id == "" || len(id) > maxEndpointID {
		return fmt.Errorf("id of %d bytes: use 1 to %d", len(id), maxEndpointID)
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("id %q: use lower-case letters, digits, '-' and '_' only", id)
		}
	}
	return nil
}

// Wants reports whether the endpoint's patterns select an event type.
func (e Endpoint) Wants(eventType string) bool { return match.Type(e.Events, eventType) }

// Attempts is how many attempts a delivery has by the endpoint's own backoff; 0 if it has none, or one without an end: then the kind's number holds.
func (e Endpoint) Attempts() int {
	if n := e.Backoff.Len(); n > 0 {
		return n + 1
	}
	return 0
}

// clone returns a copy that shares nothing that can be changed.
func (e Endpoint) clone() Endpoint {
	e.Events, e.Secrets, e.Retiring = slices.Clone(e.Events), slices.Clone(e.Secrets), slices.Clone(e.Retiring)
	e.Headers, e.Metadata = maps.Clone(e.Headers), maps.Clone(e.Metadata)
	return e
}

// String returns id and host.
func (e Endpoint) String() string { return "endpoint " + e.ID + " at " + e.origin() }

// GoString returns what String does.
func (e Endpoint) GoString() string { return e.String() }

// LogValue returns id and host.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID), slog.String("host", e.origin()))
}

// origin is scheme and host of the URL, the part that may be shown.
func (e Endpoint) origin() string {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return "(no valid url)"
	}
	return u.Scheme + "://" + u.Host
}
