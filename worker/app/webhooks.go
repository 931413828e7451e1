package app

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-go/caisson/internal/config"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// registerWebhooks registers the kind webhook.deliver for the configured endpoints and adds their breakers and limits to destinations.
func registerWebhooks(registry *worker.Registry, cfg *config.Config, destinations map[string]pools.DestinationConfig) (*webhook.Sender, error) {
	guard, err := guardOf(cfg.Webhook)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	var endpoints []webhook.Endpoint
	var errs []error
	timeouts := webhook.Timeouts{Total: cfg.Webhook.Default.Timeout}
	for _, id := range slices.Sorted(maps.Keys(cfg.Webhook.Endpoints)) {
		c := cfg.Webhook.Endpoints[id]
		e, err := endpointOf(id, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook.endpoints.%s.%w", id, err))
			continue
		}
		if _, taken := destinations[id]; taken {
			errs = append(errs, fmt.Errorf("destinations.overrides.%s: is a webhook endpoint: set its limits in webhook.endpoints.%s and webhook.breaker", id, id))
		}
		if n, attempts := c.Schedule.Len(), cfg.Webhook.Default.Schedule.Len(); n != attempts {
			errs = append(errs, fmt.Errorf("webhook.endpoints.%s.schedule: has %d delays where webhook.default.schedule has %d: endpoints share the number of attempts", id, n, attempts))
		}
		if err := checkPort(e.URL, cfg.Webhook.Ports); err != nil {
			errs = append(errs, fmt.Errorf("webhook.endpoints.%s.url: %w", id, err))
		}
		timeouts.Total = max(timeouts.Total, c.Timeout)
		endpoints = append(endpoints, e)
		destinations[id] = pools.DestinationConfig{
			Breaker:     breakerOf(cfg.Webhook.Breaker),
			Concurrency: c.Concurrency,
			Rate:        pools.RateConfig{Rate: orNone(c.Rate), Burst: c.Burst},
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	static, err := webhook.NewStatic(guard, endpoints...)
	if errors.Is(err, webhook.ErrBlocked) {
		return nil, fmt.Errorf("webhook.endpoints: %w: add its network to webhook.allow_cidrs if deliveries may go there", err)
	}
	if err != nil {
		return nil, fmt.Errorf("webhook.endpoints: %w", err)
	}
	if timeouts.Total > defaultTotal {
		timeouts.Header = timeouts.Total // who may take longer than usual may do so before the first byte
	}
	sender, err := webhook.Register(registry, webhook.Config{Endpoints: static, Guard: guard, Timeouts: timeouts})
	if err != nil {
		return nil, err
	}
	registry.Override(webhook.KindDeliver, func(k *worker.KindConfig) {
		k.Backoff = cfg.Webhook.Default.Schedule
		if n := k.Backoff.Len(); n > 0 {
			k.MaxAttempts = n + 1
		}
	})
	return sender, nil
}

func guardOf(cfg config.Webhook) (*webhook.Guard, error) {
	var c webhook.GuardConfig
	for _, text := range cfg.AllowCIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("allow_cidrs: %w", err)
		}
		c.Allow = append(c.Allow, prefix)
	}
	for _, port := range cfg.Ports {
		c.Ports = append(c.Ports, uint16(port)) //nolint:gosec // the configuration takes 1 to 65535
	}
	return webhook.NewGuard(c)
}

// checkPort refuses a URL whose port is not among those that deliveries may use. Redirects are never followed, so that the URL's is the one.
func checkPort(endpoint string, allowed []int) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil //nolint:nilerr // the endpoint's own check says what is wrong with it, without showing it
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if n, err := strconv.Atoi(port); err != nil || !slices.Contains(allowed, n) {
		return fmt.Errorf("port %s is not among webhook.ports: add it there", port)
	}
	return nil
}

// endpointOf translates one endpoint. Its error begins with the field.
func endpointOf(id string, c config.Endpoint) (webhook.Endpoint, error) {
	e := webhook.Endpoint{
		ID: id, URL: c.URL.Reveal(), ClientErrors: webhook.ClientErrors(c.ClientErrors), Timeout: c.Timeout,
		Concurrency: c.Concurrency, Rate: c.Rate, Schedule: c.Schedule, AllowHTTP: c.AllowHTTP, Headers: make(map[string]string, len(c.Headers)),
	}
	for name, value := range c.Headers {
		e.Headers[name] = value.Reveal()
	}
	for i, text := range c.Secrets {
		secret, err := webhook.ParseSecret(text.Reveal())
		if err != nil {
			return e, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		e.Secrets = append(e.Secrets, secret)
	}
	return e, nil
}

// defaultTotal is the total timeout up to which the sender's own limit on waiting for the first byte, 15 s, holds.
const defaultTotal = 26 * time.Second
