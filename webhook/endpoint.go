package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// Endpoint is one receiver of deliveries. It prints and logs as id and host only; its JSON leaves out what may be secret.
type Endpoint struct {
	// ID names the endpoint and is the destination of its jobs. Required; 1 to 128 lower-case letters, digits, '-' and '_', so that it is
	// its own normal form as a destination.
	ID string `json:"id"`
	// URL to POST to. Required. See [Guard] for what is allowed.
	URL string `json:"-"`
	// Secrets sign each delivery, the current one first; the others are still in their rotation window. At least one is required.
	Secrets []Secret `json:"-"`
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
	// Schedule gives the delays after failed attempts to this endpoint. Zero means the kind's. How many attempts there are is the kind's.
	Schedule schedule.Policy `json:"-"`
	// AllowHTTP permits a URL without TLS.
	AllowHTTP bool `json:"allow_http,omitempty"`
	// Disabled stops deliveries: jobs go to the dead letters with the cause endpoint_gone, without a call.
	Disabled bool `json:"disabled,omitempty"`
}

// ClientErrors says what a 4xx answer means.
type ClientErrors string

// The meanings.
const (
	// ClientErrorsRetry fails the attempt: endpoints of customers answer 4xx in the middle of their own deployments.
	ClientErrorsRetry ClientErrors = "retry"
	// ClientErrorsReject gives the job up at once.
	ClientErrorsReject ClientErrors = "reject"
)

const (
	defaultConcurrency = 3
	maxEndpointID      = 128
)

func (e Endpoint) withDefaults() Endpoint {
	if e.ClientErrors == "" {
		e.ClientErrors = ClientErrorsRetry
	}
	if e.Concurrency == 0 {
		e.Concurrency = defaultConcurrency
	}
	return e
}

// Check returns e with its defaults filled in, or everything that is wrong with it.
func (g *Guard) Check(e Endpoint) (Endpoint, error) {
	e = e.withDefaults()
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
	check(len(e.Secrets) > 0, "secrets: at least one is required to sign deliveries; make one with NewSecret")
	for i, s := range e.Secrets {
		check(!s.IsZero(), "secrets[%d] is empty: parse or generate one", i)
		for j := range i {
			check(!s.Equal(e.Secrets[j]), "secrets[%d] is the same as secrets[%d]: leave one out", i, j)
		}
	}
	if err := checkHeaders(e.Headers); err != nil {
		errs = append(errs, err)
	}
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
