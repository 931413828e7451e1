package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where endpoints are kept in the store, for what was asked for.
func TestHasRegistry(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"":                                       false,
		"webhook: {secret_key: a}":               true,
		"webhook: {secret_key_file: /run/key}":   true,
		"webhook: {secret_key: a, registry: on}": true,
		"webhook: {secret_key: a, registry: 'off'}":                 false,
		"store: none\nwebhook: {secret_key: a}":                     false,
		"broker: rabbitmq\nwebhook: {secret_key: a}":                false,
		"postgres: {url: postgres://h/d}\nwebhook: {secret_key: a}": true,
	} {
		file = strings.Replace(file, "registry: on", "registry: 'on'", 1)
		c, _, err := load("f", []byte(file), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.HasRegistry(); got != want {
			t.Errorf("%q: %v, want %v", file, got, want)
		}
	}
}

func TestRegistryRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"webhook: {registry: 'on'}":                             "webhook.secret_key: is missing, and the registry seals secrets with it",
		"webhook: {secret_key: a, secret_key_file: b}":          "webhook.secret_key_file: webhook.secret_key is set, too",
		"store: none\nwebhook: {secret_key: a, registry: 'on'}": "webhook.registry: on needs a store, and there is none: set store to auto",
		"webhook: {attempt_log: 1h, event_retention: 2h}":       "webhook.attempt_log: 1h is shorter than webhook.event_retention, 2h",
		"broker: sqs\nwebhook: {secret_key: a, registry: 'on'}": "set postgres.url, or set store to sqlite",
		"webhook: {event_retention: 10m}":                       "webhook.event_retention: 10m is too little",
		"webhook: {registry: maybe}":                            `webhook.registry: "maybe" is not one of auto, on, off`,
	} {
		_, _, err := load("f", []byte(file), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", file, err, want)
		}
	}
	if _, _, err := load("f", []byte("webhook: {attempt_log: 0s}"), nil, nil); err != nil {
		t.Errorf("no log of attempts: %v", err)
	}
}

// What has no effect is said.
func TestRegistryWarnings(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"webhook: {attempt_log: 80h}":                "webhook.attempt_log: has no effect, since there is no registry",
		"broker: rabbitmq\nwebhook: {secret_key: a}": "webhook.registry: is off although a key is given, since there is no store",
	} {
		_, warnings, err := load("f", []byte(file), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range warnings {
			all = append(all, w.String())
		}
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("%q warns %q, want %q", file, all, want)
		}
	}
}

// A key that everybody on the machine can read is warned of, by its setting.
func TestReadableKeyFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 2} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := load("f", fmt.Appendf(nil, "webhook: {secret_key_file: %q, old_secret_key_files: [%q]}", path, path), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) != want {
			t.Errorf("mode %o: %v, want %d warnings", mode, warnings, want)
		}
		for _, w := range warnings {
			if text := w.String(); !strings.Contains(text, "secret_key_file") || !strings.Contains(text, "has mode 0644") {
				t.Errorf("warning %q", text)
			}
		}
	}
}
