package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-go/caisson/webhook/signature"
)

// Sender delivers events to endpoints. It is safe for concurrent use.
type Sender struct {
	cfg     Config
	client  *client
	targets *targets
	gone    goneList
}

// Attempt is one call to an endpoint, as [Config.Observe] is told.
type Attempt struct {
	// Endpoint is the endpoint's id.
	Endpoint string
	// Event is the webhook-id.
	Event string
	// Job is the job's id.
	Job string
	// Number of the job's attempt, counted from 1.
	Number int
	// Tenant is the endpoint's.
	Tenant string
	// At is when the call ended.
	At time.Time
	// Response is what came back.
	Response Response
	// Excerpt is the beginning of the response's body as one line, Err is why no response came, and RequestID is what the receiver calls the
	// request, in at most 128 bytes. Unlike those of Response they are cleaned, as by [Response.Shown]: they can be kept and shown.
	Excerpt, Err, RequestID string
	// CutOff says that our own stop, or the end of the job's time, ended the call: it says nothing about the endpoint.
	CutOff bool

	url string
}

// NewSender returns a sender for calls outside a worker, such as test deliveries. For a worker, call [Sender.Register] on it.
func NewSender(cfg Config) (*Sender, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Sender{
		cfg:     cfg,
		client:  newClient(cfg.Guard, cfg.Timeouts, cfg.RootCAs),
		targets: &targets{guard: cfg.Guard},
	}, nil
}

// Close closes idle connections. Deliveries that run are not cut off. A closed sender can be used again.
func (s *Sender) Close() { s.client.close() }

// Send makes one signed delivery, whatever the state of the endpoint. The error says that no call could be made at all: the endpoint or
// the delivery is not valid. What went wrong with the call is in the response.
func (s *Sender) Send(ctx context.Context, e Endpoint, d Delivery) (Response, error) {
	target, err := s.targets.find(e)
	if err != nil {
		return Response{}, fmt.Errorf("endpoint %q: %w", e.ID, err)
	}
	if err := checkHeaders(e.Headers); err != nil {
		return Response{}, fmt.Errorf("endpoint %q: %w", e.ID, err)
	}
	header, err := s.header(e, d)
	if err != nil {
		return Response{}, fmt.Errorf("endpoint %q: %w", e.ID, err)
	}
	timeout := s.cfg.Timeouts.Total
	if e.Timeout > 0 {
		timeout = min(timeout, e.Timeout)
	}
	r, err := s.client.send(ctx, call{target: target, tls: e.TLS, header: header, body: d.Body}, timeout)
	if err != nil {
		return Response{}, fmt.Errorf("endpoint %q: %w", e.ID, err)
	}
	if r.Err = cleaned(r.Err, e); errors.Is(r.Err, ErrBlocked) {
		r.Err = ErrBlocked // what is around it names the address
	}
	return r, nil
}

// header makes the request's headers. The clock is read once: the timestamp that is signed is the one that is sent, and the one that decides
// which keys sign.
func (s *Sender) header(e Endpoint, d Delivery) (http.Header, error) {
	now := s.cfg.Now()
	signed, err := signature.Sign(e.signing(now), d.ID, now, d.Body)
	if err != nil {
		return nil, err
	}
	h := make(http.Header, len(e.Headers)+5)
	// Our own names are written as net/http keeps them, which spares making them anew each time.
	own := []string{defaultContentType, s.cfg.UserAgent, d.ID, strconv.FormatInt(now.Unix(), 10), signed}
	h["Content-Type"], h["User-Agent"] = own[0:1:1], own[1:2:2]
	setHeaders(h, e.Headers)
	if d.ContentType != "" {
		h.Set("Content-Type", d.ContentType)
	}
	h["Webhook-Id"], h["Webhook-Timestamp"], h["Webhook-Signature"] = own[2:3:3], own[3:4:4], own[4:5:5]
	return h, nil
}

// signing returns the secrets that sign at that time: all the current ones, then those that are still in their rotation window.
func (e Endpoint) signing(at time.Time) []signature.Secret {
	if len(e.Retiring) == 0 {
		return e.Secrets
	}
	list := slices.Clone(e.Secrets)
	for _, r := range e.Retiring {
		if r.Until.After(at) {
			list = append(list, r.Secret)
		}
	}
	return list
}

// Gone returns the ids of endpoints that answered 410 Gone and get no deliveries from this process any more, sorted.
func (s *Sender) Gone() []string { return s.gone.ids() }

// Enable lets deliveries to an endpoint that answered 410 go out again. So does giving the endpoint another URL, enabling it in a registry, or
// a restart.
func (s *Sender) Enable(endpointID string) { s.gone.remove(endpointID) }
