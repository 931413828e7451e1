package endpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// settingsVersion is the form of [Record.Settings] and of what is sealed. A record of a later form is refused rather than written back without
// what is new in it.
const settingsVersion = 1

// settings are the fields of an endpoint that may lie in the clear.
type settings struct {
	Version int `json:"version"`
	// Origin is scheme and host of the URL.
	Origin       string               `json:"origin"`
	Events       []string             `json:"events,omitempty"`
	ClientErrors webhook.ClientErrors `json:"client_errors"`
	Timeout      time.Duration        `json:"timeout_ns,omitempty"`
	Concurrency  int                  `json:"concurrency"`
	Rate         float64              `json:"rate,omitempty"`
	Backoff      string               `json:"schedule,omitempty"` // stored under its first name; schedule.ParseBackoff reads it
	AllowHTTP    bool                 `json:"allow_http,omitempty"`
	Certificate  string               `json:"certificate,omitempty"`
	RootCAs      string               `json:"root_cas,omitempty"`
	Ordered      bool                 `json:"ordered,omitempty"`
	Shared       bool                 `json:"shared,omitempty"`
	Adaptive     bool                 `json:"adaptive,omitempty"`
	Metadata     map[string]string    `json:"metadata,omitempty"`
}

// secrets are the fields that may not.
type secrets struct {
	URL      string            `json:"url"`
	Headers  map[string][]byte `json:"headers,omitempty"` // values may be no UTF-8
	Secrets  []string          `json:"secrets"`
	Retiring []retiring        `json:"retiring,omitempty"`
	Key      string            `json:"key,omitempty"`
}

type retiring struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

// encode returns the record of a checked endpoint.
func (k *Keyring) encode(e webhook.Endpoint) (Record, error) {
	open := settings{
		Version: settingsVersion, Origin: origin(e.URL), Events: e.Events, ClientErrors: e.ClientErrors, Timeout: e.Timeout, Concurrency: e.Concurrency,
		Rate: e.Rate, AllowHTTP: e.AllowHTTP, Certificate: e.TLS.Certificate, RootCAs: e.TLS.RootCAs, Ordered: e.Ordered, Shared: e.Shared,
		Adaptive: e.Adaptive, Metadata: e.Metadata,
	}
	if !e.Backoff.IsZero() {
		open.Backoff = e.Backoff.String()
	}
	hidden := secrets{URL: e.URL, Key: e.TLS.Key}
	if len(e.Headers) > 0 {
		hidden.Headers = make(map[string][]byte, len(e.Headers))
	}
	for name, value := range e.Headers {
		hidden.Headers[name] = []byte(value)
	}
	all := slices.Clone(e.Secrets)
	for _, s := range e.Secrets {
		hidden.Secrets = append(hidden.Secrets, s.Reveal())
	}
	for _, r := range e.Retiring {
		hidden.Retiring = append(hidden.Retiring, retiring{r.Secret.Reveal(), r.Until.UTC()})
		all = append(all, r.Secret)
	}
	shown, err := json.Marshal(open)
	if err != nil {
		return Record{}, fmt.Errorf("endpoint %q: settings: %w", e.ID, err)
	}
	plain, err := json.Marshal(hidden)
	if err != nil {
		return Record{}, fmt.Errorf("endpoint %q: its secrets cannot be encoded", e.ID)
	}
	return Record{
		ID: e.ID, Tenant: e.Tenant, State: e.State, Reason: e.Reason, Since: e.Since,
		Settings: shown, Sealed: k.seal(e.ID, plain), Key: k.Current(), Fingerprints: k.fingerprints(all),
	}, nil
}

// decode returns the endpoint of a record. Beside an error it returns what it could read, without anything secret.
func (k *Keyring) decode(r Record) (Entry, error) {
	entry := Entry{
		Endpoint: webhook.Endpoint{ID: r.ID, Tenant: r.Tenant, State: r.State, Reason: r.Reason, Since: r.Since},
		Created:  r.Created, Updated: r.Updated, Revision: r.Revision,
	}
	err := decodeSettings(&entry.Endpoint, r.Settings)
	if err == nil {
		err = k.decodeSecrets(&entry.Endpoint, r)
	}
	if err != nil {
		return entry, fmt.Errorf("endpoint %q: %w", r.ID, err)
	}
	return entry, nil
}

// decodeSettings fills in what it can also beside an error: events are published to the patterns of an endpoint that a newer program has written,
// and without any to all of its tenant, rather than lost.
func decodeSettings(e *webhook.Endpoint, data []byte) error {
	var open settings
	err := json.Unmarshal(data, &open)
	e.Events, e.ClientErrors, e.Timeout, e.Concurrency, e.Rate = open.Events, open.ClientErrors, open.Timeout, open.Concurrency, open.Rate
	e.AllowHTTP, e.Ordered, e.Shared, e.Adaptive, e.Metadata = open.AllowHTTP, open.Ordered, open.Shared, open.Adaptive, open.Metadata
	e.TLS.Certificate, e.TLS.RootCAs = open.Certificate, open.RootCAs
	switch {
	case open.Version > settingsVersion:
		return fmt.Errorf("settings have version %d, this program knows %d: run the newer program", open.Version, settingsVersion)
	case err != nil:
		return fmt.Errorf("settings cannot be read: %w", err)
	case open.Backoff == "":
		return nil
	}
	if e.Backoff, err = schedule.ParseBackoff(open.Backoff); err != nil {
		return fmt.Errorf("backoff: %w", err)
	}
	return nil
}

// errSealed says no more: an error of what was sealed may quote it.
var errSealed = errors.New("what was sealed cannot be read: was it written by a newer program?")

func (k *Keyring) decodeSecrets(e *webhook.Endpoint, r Record) error {
	plain, err := k.open(r.ID, r.Key, r.Sealed)
	if err != nil {
		return err
	}
	var hidden secrets
	if json.Unmarshal(plain, &hidden) != nil {
		return errSealed
	}
	var parsed []signature.Secret
	for _, text := range hidden.Secrets {
		s, err := signature.ParseSecret(text)
		if err != nil {
			return errSealed
		}
		parsed = append(parsed, s)
	}
	var windows []webhook.RetiringSecret
	for _, old := range hidden.Retiring {
		s, err := signature.ParseSecret(old.Secret)
		if err != nil {
			return errSealed
		}
		windows = append(windows, webhook.RetiringSecret{Secret: s, Until: old.Until})
	}
	if len(hidden.Headers) > 0 {
		e.Headers = make(map[string]string, len(hidden.Headers))
	}
	for name, value := range hidden.Headers {
		e.Headers[name] = string(value)
	}
	e.URL, e.Secrets, e.Retiring, e.TLS.Key = hidden.URL, parsed, windows, hidden.Key
	return nil
}

// origin is the part of a URL that may be shown.
func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
