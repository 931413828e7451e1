package webhooks

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
)

// Settings is what a configuration says of webhooks.
type Settings struct {
	cfg      *config.Config
	guard    *webhook.Guard
	static   *webhook.Static
	timeouts webhook.Timeouts
	keys     *endpoints.Keyring // nil without a registry
}

// Read reads the configuration and the file of the key, and opens nothing.
func Read(cfg *config.Config) (*Settings, error) {
	guard, err := guardOf(cfg.Webhook)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	s := &Settings{cfg: cfg, guard: guard, timeouts: webhook.Timeouts{Total: cfg.Webhook.Default.Timeout}}
	if err := s.readStatic(); err != nil {
		return nil, err
	}
	if s.timeouts.Total > defaultTotal {
		s.timeouts.Header = s.timeouts.Total // who may take longer than usual may do so before the first byte
	}
	if cfg.HasRegistry() {
		if s.keys, err = keysOf(cfg.Webhook); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// defaultTotal is the total timeout up to which the sender's own limit on waiting for the first byte, 15 s, holds.
var defaultTotal = webhook.Timeouts{}.WithDefaults().Total

// keysOf reads the keys that seal the registry's secrets. Errors name the setting and hold no key.
func keysOf(cfg config.Webhook) (*endpoints.Keyring, error) {
	var keys []string
	take := func(setting, key string, err error) error {
		if err == nil {
			_, err = endpoints.ParseKeyring(key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		keys = append(keys, key)
		return nil
	}
	file := func(setting, path string) error {
		text, err := os.ReadFile(path)
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			err = errors.New("there is no key in the file")
		}
		return take(setting+" "+path, string(bytes.TrimSpace(text)), err)
	}
	var errs []error
	if cfg.SecretKeyFile != "" {
		errs = append(errs, file("webhook.secret_key_file", cfg.SecretKeyFile))
	} else {
		errs = append(errs, take("webhook.secret_key", cfg.SecretKey.Reveal(), nil))
	}
	for i, old := range cfg.OldSecretKeys {
		errs = append(errs, take(fmt.Sprintf("webhook.old_secret_keys[%d]", i), old.Reveal(), nil))
	}
	for _, path := range cfg.OldSecretKeyFiles {
		errs = append(errs, file("webhook.old_secret_key_files", path))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	ring, err := endpoints.ParseKeyring(keys...)
	if err != nil {
		return nil, fmt.Errorf("webhook.old_secret_keys and the files of them, behind the current key: %w", err)
	}
	return ring, nil
}

// Any reports whether there can be deliveries at all.
func (s *Settings) Any() bool { return s.keys != nil || len(s.cfg.Webhook.Endpoints) > 0 }

// ErrNoRegistry means that the configuration names no registry of webhook endpoints.
var ErrNoRegistry = errors.New("there is no registry of webhook endpoints: set webhook.secret_key or webhook.secret_key_file, have a store, and do not set webhook.registry to off")

// Registry returns the registry on a store.
func (s *Settings) Registry(store endpoints.Store) (*endpoints.Registry, error) {
	if s.keys == nil || store == nil {
		return nil, ErrNoRegistry
	}
	return endpoints.NewRegistry(endpoints.RegistryConfig{Store: store, Keys: s.keys, Guard: s.guard})
}

// Check refuses what could not be added, field by field.
func (s *Settings) Check(e webhook.Endpoint) error {
	return webhookapi.Check(s.guard, s.timeouts.Total, e)
}

// Sender returns a sender for test deliveries. The caller closes it.
func (s *Settings) Sender() (*webhook.Sender, error) {
	return webhook.NewSender(webhook.Config{Endpoints: s.static, Guard: s.guard, Timeouts: s.timeouts})
}

// MaxEvent is the most bytes of an event's payload, given the broker's most for a message; 0 if that is not known.
func (s *Settings) MaxEvent(broker int) int {
	most := s.cfg.Webhook.MaxEvent
	if broker > 0 {
		most = min(most, broker-min(broker/2, envelopeRoom))
	}
	return cmp.Or(most, webhookapi.DefaultMaxEvent)
}

// envelopeRoom is what a message may need beside its payload where the broker counts it all, in bytes.
const envelopeRoom = 8 << 10
