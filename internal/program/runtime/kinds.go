package runtime

import (
	"slices"
	"strings"

	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/worker"
)

// override changes the registered kinds as the configuration says.
func override(registry *worker.Registry, cfg *config.Config) {
	registered := registry.Kinds()
	for name, k := range cfg.Kinds {
		registry.Configure(meant(name, registered, cfg), func(c *worker.KindConfig) { overrideKind(c, k) })
	}
}

// meant returns the registered kind that the configured name stands for. A variable cannot spell email.send: where the file does not have
// that kind, CAISSON_KINDS_EMAIL_SEND_TIMEOUT makes email_send. The name is returned as it is unless variables made it and mean one kind.
func meant(name string, registered []string, cfg *config.Config) string {
	if slices.Contains(registered, name) {
		return name
	}
	for _, s := range cfg.Settings() {
		if strings.HasPrefix(s.Key, "kinds."+name+".") && s.Origin != config.Env && s.Origin != config.Default {
			return name
		}
	}
	found := ""
	for _, r := range registered {
		switch {
		case !config.SameVariable(name, r):
		case found != "":
			return name
		default:
			found = r
		}
	}
	if found == "" {
		return name
	}
	return found
}

// overrideKind puts what k sets over what the code registered.
func overrideKind(c *worker.KindConfig, k config.Kind) {
	replace(&c.Timeout, k.Timeout)
	if k.TimeoutFloor != 0 {
		c.AdaptiveTimeout.Floor = new(k.TimeoutFloor)
	}
	replace(&c.MaxAttempts, k.MaxAttempts)
	replace(&c.Bulkhead, k.Bulkhead.Size)
	replace(&c.Waiting, k.Bulkhead.Waiting)
	if k.Bulkhead.AdaptiveMin != 0 {
		c.Adaptive.Min = new(k.Bulkhead.AdaptiveMin)
	}
	replace(&c.MaxAge, k.MaxAge)
	replace(&c.Destination, k.Destination)
	if !k.Backoff.IsZero() {
		c.Backoff = k.Backoff
	}
	switch k.Idempotency {
	case "key":
		c.Keyed = new(true)
	case "none":
		c.Keyed = new(false)
	}
}

// replace sets field to value unless value is zero.
func replace[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
