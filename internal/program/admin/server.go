package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Config configures a [Server].
type Config struct {
	// Addr is host:port to listen on. Required. Port 0 takes a free one: see [Server.Addr].
	Addr string
	// User and Password ask for basic authentication. Both or neither. Required for an Addr beyond the loopback.
	User, Password string
	// Checks decide /readyz. None means always ready.
	Checks []Check
	// CheckTimeout bounds each check. Zero means 2 s.
	CheckTimeout time.Duration
	// Metrics answers /metrics. Nil means that there is no such page.
	Metrics http.Handler
	// API answers everything under /v1/, changes included, for whoever has the credentials. Without credentials there is none, on the loopback
	// neither: every program on this machine, and every page in a browser on it, could use it. Nil means that there is none.
	API http.Handler
	// StopTimeout is how long Run waits for requests under way when its context ends. Zero means 3 s.
	StopTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.CheckTimeout == 0 {
		c.CheckTimeout = 2 * time.Second
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 3 * time.Second
	}
	return c
}

func (c Config) validate() error {
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("admin address %q is not host:port: for example 127.0.0.1:9464", c.Addr)
	case (c.User == "") != (c.Password == ""):
		return errors.New("admin user and password go together: set both or neither")
	case c.User == "" && !loopback(host):
		return fmt.Errorf("admin address %q can be reached from other hosts: set user and password, or listen on 127.0.0.1", c.Addr)
	case strings.Contains(c.User, ":"):
		return errors.New("admin user holds a colon, which basic authentication cannot carry")
	case c.CheckTimeout < 0 || c.StopTimeout < 0:
		return errors.New("admin timeouts must not be negative")
	}
	for i, check := range c.Checks {
		if check.Name == "" || check.Probe == nil {
			return fmt.Errorf("admin check %d needs a name and a probe", i+1)
		}
	}
	return nil
}

// loopback reports whether host is this machine only. A name other than localhost could mean anything tomorrow.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Server is the admin server. Create it with [New].
type Server struct {
	cfg      Config
	listener net.Listener
	http     *http.Server
}

// New checks cfg and starts to listen, so that a port in use is an error at start. The caller must call Run or Close.
func New(ctx context.Context, cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("admin server: %w", err)
	}
	// The name localhost is resolved by the system: what was bound decides.
	if host, _, err := net.SplitHostPort(listener.Addr().String()); cfg.User == "" && (err != nil || !loopback(host)) {
		return nil, errors.Join(fmt.Errorf("admin address %q was resolved to %s, which is not the loopback: set user and password", cfg.Addr, listener.Addr()), listener.Close())
	}
	s := &Server{cfg: cfg, listener: listener}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then lets requests under way finish for StopTimeout. It returns nil after a stop by ctx.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("admin server: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.StopTimeout)
	defer cancel()
	err := s.http.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close() // requests that are still running are cut off: the stop is bounded
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	if err != nil {
		return fmt.Errorf("stop admin server: %w", err)
	}
	return nil
}

// Close ends the server at once. It is for callers that never call Run.
func (s *Server) Close() error {
	if err := errors.Join(s.http.Close(), ignoreClosed(s.listener.Close())); err != nil {
		return fmt.Errorf("close admin server: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
