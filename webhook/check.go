package webhook

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-go/caisson/webhook/internal/match"
	"github.com/caisson-go/caisson/webhook/signature"
)

// Bounds of what an endpoint may hold. They keep one record small and its requests sendable.
const (
	maxTenant        = 128
	maxPatterns      = 100
	maxSecrets       = 10 // each one is a signature in a header
	maxReason        = 256
	maxMetadata      = 50
	maxMetadataBytes = 8 << 10
)

// checkSecrets refuses an endpoint that cannot sign, or signs twice with one key.
func checkSecrets(secrets []signature.Secret, retiring []RetiringSecret) error {
	var errs []error
	if len(secrets) == 0 {
		errs = append(errs, errors.New("secrets: at least one is required to sign deliveries; make one with NewSecret"))
	}
	if n := len(secrets) + len(retiring); n > maxSecrets {
		errs = append(errs, fmt.Errorf("secrets: %d with those that retire; use at most %d, or let some retire first", n, maxSecrets))
	}
	type named struct {
		name   string
		secret signature.Secret
	}
	var seen []named
	look := func(name string, s signature.Secret) {
		if s.IsZero() {
			errs = append(errs, fmt.Errorf("%s is empty: parse or generate one", name))
			return
		}
		for _, other := range seen {
			if s.Equal(other.secret) {
				errs = append(errs, fmt.Errorf("%s is the same as %s: leave one out", name, other.name))
			}
		}
		seen = append(seen, named{name, s})
	}
	for i, s := range secrets {
		look(fmt.Sprintf("secrets[%d]", i), s)
	}
	for i, r := range retiring {
		look(fmt.Sprintf("retiring[%d]", i), r.Secret)
		if r.Until.IsZero() {
			errs = append(errs, fmt.Errorf("retiring[%d]: until when does it sign? Give a time", i))
		}
	}
	return errors.Join(errs...)
}

// checkTenant says what is wrong with the name of a tenant.
func checkTenant(name string) error {
	if name == "" || len(name) > maxTenant {
		return fmt.Errorf("tenant of %d bytes: use 1 to %d", len(name), maxTenant)
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("tenant %q: use printable ASCII characters without spaces", name)
		}
	}
	return nil
}

func checkPatterns(patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("events: %d patterns; use at most %d", len(patterns), maxPatterns)
	}
	var errs []error
	for _, p := range patterns {
		errs = append(errs, match.CheckPattern(p))
	}
	return errors.Join(errs...)
}

// Check says what is wrong with a state and the reason for it.
func (s State) Check(reason string) error {
	switch s {
	case StateActive:
		if reason != "" {
			return fmt.Errorf("reason %q: an active endpoint has none", reason)
		}
	case StatePaused, StateDisabled:
	default:
		return fmt.Errorf("state %q: use %q, %q or %q", string(s), StateActive, StatePaused, StateDisabled)
	}
	if len(reason) > maxReason {
		return fmt.Errorf("reason of %d bytes: use at most %d", len(reason), maxReason)
	}
	if !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) {
		return fmt.Errorf("reason %q: use one line of UTF-8 text", reason)
	}
	return nil
}

func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return fmt.Errorf("metadata: %d entries; use at most %d", len(metadata), maxMetadata)
	}
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
		if name == "" {
			return errors.New("metadata: an entry has no name")
		}
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata %q: use UTF-8 text", name)
		}
	}
	if size > maxMetadataBytes {
		return fmt.Errorf("metadata: %d bytes in all; use at most %d", size, maxMetadataBytes)
	}
	return nil
}
