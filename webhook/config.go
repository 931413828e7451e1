package webhook

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Timeouts of one attempt. Each must be positive once defaults are filled in.
type Timeouts struct {
	// Dial bounds connecting, the name lookup included. Default 5 s.
	Dial time.Duration
	// TLS bounds the handshake. Default 5 s.
	TLS time.Duration
	// Header bounds the wait for the response's headers after the request was written. Default 15 s.
	Header time.Duration
	// Total bounds the whole attempt, from dialling to the end of the response body. Default 26 s.
	Total time.Duration
	// Idle is how long an unused connection is kept. Default 30 s.
	Idle time.Duration
}

// WithDefaults fills in what zero means.
func (t Timeouts) WithDefaults() Timeouts {
	t.Dial = cmp.Or(t.Dial, 5*time.Second)
	t.TLS = cmp.Or(t.TLS, 5*time.Second)
	t.Header = cmp.Or(t.Header, 15*time.Second)
	t.Total = cmp.Or(t.Total, 26*time.Second)
	t.Idle = cmp.Or(t.Idle, 30*time.Second)
	return t
}

// Config tells a sender how to work. Only Endpoints is required.
type Config struct {
	// Endpoints finds endpoints by id. Required.
	Endpoints Endpoints
	// Guard decides where deliveries may go. Default: public addresses, ports 80, 443 and 8443.
	Guard *Guard
	// Timeouts of one attempt.
	Timeouts Timeouts
	// RootCAs signs the receivers' certificates. Default: the system's.
	RootCAs *x509.CertPool
	// UserAgent of each delivery. Default "caisson-webhook/" and the version of this module.
	UserAgent string
	// UnknownEndpointAfter is how long jobs of an endpoint that is not known are put back, so that a rolling deploy or a cache can bring
	// it, before they go to the dead letters. It counts from when the job was due. Default 15 min.
	UnknownEndpointAfter time.Duration
	// Observe is told of each attempt that made a call, after it. It may be called from many goroutines at once, and must be quick. Default none.
	Observe func(Attempt)
	// Now is the clock of signatures and of Retry-After dates. Default time.Now.
	Now func() time.Time
}

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	c.Timeouts = c.Timeouts.WithDefaults()
	c.UserAgent = cmp.Or(c.UserAgent, "caisson-webhook/"+version())
	c.UnknownEndpointAfter = cmp.Or(c.UnknownEndpointAfter, 15*time.Minute)
	if c.Guard == nil {
		c.Guard = defaultGuard
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Endpoints == nil {
		errs = append(errs, errors.New("endpoints: required; use NewStatic for a fixed list"))
	}
	for _, t := range []struct {
		name  string
		value time.Duration
	}{
		{"dial", c.Timeouts.Dial},
		{"tls", c.Timeouts.TLS},
		{"header", c.Timeouts.Header},
		{"total", c.Timeouts.Total},
		{"idle", c.Timeouts.Idle},
		{"unknown endpoint after", c.UnknownEndpointAfter},
	} {
		if t.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %s: must be positive", t.name, t.value))
		}
	}
	if err := checkHeaders(map[string]string{"User-Agent": c.UserAgent}); err != nil {
		errs = append(errs, fmt.Errorf("user agent: %w", err))
	}
	return errors.Join(errs...)
}

const modulePath = "github.com/caisson-go/caisson"

// version is this module's, as the build recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range modules {
		if m.Path == modulePath && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "dev"
}
