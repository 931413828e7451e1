package webhooks

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// readStatic reads the endpoints of the configuration file.
func (s *Settings) readStatic() error {
	cfg := s.cfg.Webhook
	var list []webhook.Endpoint
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(cfg.Endpoints)) {
		c := cfg.Endpoints[id]
		e, err := endpointOf(id, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("webhook.endpoints.%s.%w", id, err))
			continue
		}
		s.timeouts.Total = max(s.timeouts.Total, c.Timeout)
		list = append(list, e)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	static, err := webhook.NewStatic(s.guard, list...)
	if errors.Is(err, webhook.ErrBlocked) {
		return fmt.Errorf("webhook.endpoints: %w: add its network to webhook.allow_cidrs if deliveries may go there", err)
	}
	if err != nil {
		return fmt.Errorf("webhook.endpoints: %w", err)
	}
	s.static = static
	return nil
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

// endpointOf translates one endpoint. Its error begins with the field.
func endpointOf(id string, c config.Endpoint) (webhook.Endpoint, error) {
	e := webhook.Endpoint{
		ID: id, URL: c.URL.Reveal(), ClientErrors: webhook.ClientErrors(c.ClientErrors), Timeout: c.Timeout,
		Concurrency: c.Concurrency, Rate: c.Rate, Backoff: c.Backoff, AllowHTTP: c.AllowHTTP, Headers: make(map[string]string, len(c.Headers)),
	}
	for name, value := range c.Headers {
		e.Headers[name] = value.Reveal()
	}
	for i, text := range c.Secrets {
		secret, err := signature.ParseSecret(text.Reveal())
		if err != nil {
			return e, fmt.Errorf("secrets[%d]: %w", i, err)
		}
		e.Secrets = append(e.Secrets, secret)
	}
	return e, nil
}
