package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sender delivers events to endpoints. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	client *client

	mu   sync.RWMutex
	gone map[string]string // endpoint ids that answered 410, with the URL that did
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
	// Response is what came back.
	Response Response
}

// NewSender returns a sender for calls outside a worker, such as test deliveries. [Register] makes one for a worker.
func NewSender(cfg Config) (*Sender, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Sender{
		cfg:    cfg,
		client: newClient(cfg.Guard, cfg.Timeouts, cfg.RootCAs, cfg.UserAgent),
		gone:   make(map[string]string),
	}, nil
}

// Close closes idle connections. Deliveries that run are not cut off. A closed sender can be used again.
func (s *Sender) Close() { s.client.close() }

// Send makes one signed delivery, whatever the state of the endpoint. The error says that no call could be made at all: the endpoint or
// the delivery is not valid. What went wrong with the call is in the response.
func (s *Sender) Send(ctx context.Context, e Endpoint, d Delivery) (Response, error) {
	target, err := s.cfg.Guard.checkURL(e.URL, e.AllowHTTP)
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
	r := s.client.send(ctx, call{target: target, header: header, body: d.Body}, timeout)
	r.Err = hideEchoes(r.Err, e)
	return r, nil
}

// header makes the request's headers. The clock is read once: the timestamp that is signed is the one that is sent.
func (s *Sender) header(e Endpoint, d Delivery) (http.Header, error) {
	now := s.cfg.Now()
	signature, err := Sign(e.Secrets, d.ID, now, d.Body)
	if err != nil {
		return nil, err
	}
	h := make(http.Header, len(e.Headers)+5)
	h.Set("Content-Type", defaultContentType)
	h.Set("User-Agent", s.cfg.UserAgent)
	setHeaders(h, e.Headers)
	if d.ContentType != "" {
		h.Set("Content-Type", d.ContentType)
	}
	h.Set(HeaderID, d.ID)
	h.Set(HeaderTimestamp, timestamp(now))
	h.Set(HeaderSignature, signature)
	return h, nil
}

// errDisabled is why jobs of an endpoint are given up without a call.
var errDisabled = errors.New("endpoint is disabled: enable it, then replay its dead letters")

// markGone remembers that e answered 410. It reports whether that is news.
func (s *Sender) markGone(e Endpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.gone[e.ID] == e.URL
	s.gone[e.ID] = e.URL
	return !known
}

// isDisabled reports whether e gets no calls. An endpoint that is gone comes back with another URL.
func (s *Sender) isDisabled(e Endpoint) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return e.Disabled || s.gone[e.ID] == e.URL
}

// Gone returns the ids of endpoints that answered 410 Gone and get no deliveries from this process any more, sorted.
func (s *Sender) Gone() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := make([]string, 0, len(s.gone))
	for id := range s.gone {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Enable lets deliveries to an endpoint that answered 410 go out again. So does giving the endpoint another URL, or a restart.
func (s *Sender) Enable(endpointID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, endpointID)
}

// kindTimeout leaves the handler time beyond the call's own timeout, so that the call's timeout is the one that decides.
func (s *Sender) kindTimeout() time.Duration { return s.cfg.Timeouts.Total + 4*time.Second }
