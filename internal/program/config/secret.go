package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
)

// mask stands for a secret wherever it would be shown.
const mask = "***"

// Secret is a text that shows itself only through Reveal. The zero value is no secret.
type Secret struct{ text string }

// NewSecret returns text as a secret.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text. Do not log it.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String returns a mask, or "" for no secret.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return mask
}

// Format prints the mask for every verb, so that %+v, %#v and %x show no more than %s.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the mask.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML returns the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// SecretURL is a URL of which only scheme and host are shown: paths and queries of webhook receivers often carry a token.
type SecretURL struct{ text string }

// Reveal returns the whole URL. Do not log it.
func (u SecretURL) Reveal() string { return u.text }

// IsZero reports whether there is no URL.
func (u SecretURL) IsZero() bool { return u.text == "" }

// String returns scheme and host, and a mask for the rest.
func (u SecretURL) String() string {
	if u.text == "" {
		return ""
	}
	parsed, err := url.Parse(u.text)
	if err != nil || parsed.Host == "" {
		return mask
	}
	return parsed.Scheme + "://" + parsed.Host + "/" + mask
}

// Format prints String for every verb.
func (u SecretURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// MarshalText returns String.
func (u SecretURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalJSON returns String.
func (u SecretURL) MarshalJSON() ([]byte, error) { return json.Marshal(u.String()) }

// MarshalYAML returns String.
func (u SecretURL) MarshalYAML() (any, error) { return u.String(), nil }

// LogValue returns String.
func (u SecretURL) LogValue() slog.Value { return slog.StringValue(u.String()) }
