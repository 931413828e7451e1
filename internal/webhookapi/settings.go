package webhookapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// settings returns the readers of the fields that can be changed, into e.
func settings(e *webhook.Endpoint) map[string]reader {
	clientErrors := func(text string) (webhook.ClientErrors, error) { return webhook.ClientErrors(text), nil }
	return map[string]reader{
		"tenant":        into(&e.Tenant),
		"url":           into(&e.URL),
		"events":        into(&e.Events),
		"headers":       merged(&e.Headers, strings.EqualFold),
		"client_errors": parsed(&e.ClientErrors, clientErrors),
		"timeout":       parsed(&e.Timeout, schedule.ParseDuration),
		"concurrency":   into(&e.Concurrency),
		"rate":          into(&e.Rate),
		"backoff":       parsed(&e.Backoff, parseBackoff),
		"allow_http":    into(&e.AllowHTTP),
		"tls":           tls(&e.TLS),
		"ordered":       into(&e.Ordered),
		"shared":        into(&e.Shared),
		"adaptive":      into(&e.Adaptive),
		"metadata":      merged(&e.Metadata, func(a, b string) bool { return a == b }),
	}
}

// parseBackoff reads "default" as unset, so that the delays of all deliveries apply, and not the curve of that name.
func parseBackoff(text string) (schedule.Backoff, error) {
	if strings.TrimSpace(text) == "default" {
		return schedule.Backoff{}, nil
	}
	return schedule.ParseBackoff(text)
}

// tls returns the reader of what is special about the connection.
func tls(to *webhook.TLS) reader {
	return func(value json.RawMessage) error {
		if string(value) == "null" {
			*to = webhook.TLS{}
			return nil
		}
		o, err := parseObject(value)
		if err != nil {
			return errors.New("must be an object")
		}
		return o.read(map[string]reader{
			"certificate": into(&to.Certificate),
			"key":         into(&to.Key),
			"root_cas":    into(&to.RootCAs),
		})
	}
}

// ParseEndpoint reads a new endpoint, as POST /v1/endpoints takes it. It is checked by whoever adds it.
func ParseEndpoint(text []byte) (webhook.Endpoint, error) {
	o, err := parseObject(text)
	if err != nil {
		return webhook.Endpoint{}, err
	}
	return o.endpoint()
}

func (o object) endpoint() (webhook.Endpoint, error) {
	var e webhook.Endpoint
	readers := settings(&e)
	readers["id"] = into(&e.ID)
	readers["secret"] = func(value json.RawMessage) error {
		var secret signature.Secret
		err := parsed(&secret, signature.ParseSecret)(value)
		if err == nil && !secret.IsZero() {
			e.Secrets = []signature.Secret{secret}
		}
		return err
	}
	err := o.read(readers)
	return e, err
}

// elsewhere are fields that a change cannot have, and the way there.
var elsewhere = map[string]string{
	"id":      "cannot be changed: add another endpoint and delete this one",
	"secret":  "is changed with POST /v1/endpoints/{id}/rotate-secret, so that receivers have time to follow",
	"secrets": "are changed with POST /v1/endpoints/{id}/rotate-secret, so that receivers have time to follow",
	"state":   "is changed with POST /v1/endpoints/{id}/pause, /disable and /enable",
	"reason":  "is given with POST /v1/endpoints/{id}/pause or /disable",
}

// Change is an edit of an endpoint, as PATCH takes it: a JSON merge patch (RFC 7396) of its settings.
type Change struct{ fields object }

// ParseChange reads a change.
func ParseChange(text []byte) (Change, error) {
	o, err := parseObject(text)
	if err != nil {
		return Change{}, err
	}
	return o.change()
}

func (o object) change() (Change, error) {
	var faults []FieldError
	for name, way := range elsewhere {
		if _, given := o[name]; given {
			faults = append(faults, FieldError{name, way})
		}
	}
	if len(faults) > 0 {
		return Change{}, invalidFields(faults...)
	}
	var trial webhook.Endpoint
	return Change{o}, o.read(settings(&trial))
}

// Check returns why e is refused, fault by fault. It is for endpoints that are to be stored: a missing secret will be made. No delivery may take
// longer than most, whatever the endpoint says.
func Check(guard *webhook.Guard, most time.Duration, e webhook.Endpoint) error {
	if len(e.Secrets) == 0 {
		e.Secrets = []signature.Secret{signature.NewSecret()}
	}
	_, err := guard.Check(e)
	if e.Timeout > most {
		err = errors.Join(err, fmt.Errorf("timeout %s: use at most %s, which is the longest that any delivery may take (webhook.default.timeout)",
			schedule.FormatDuration(e.Timeout), schedule.FormatDuration(most)))
	}
	if err != nil {
		return faulty(err)
	}
	return nil
}

// faulty is the problem of an endpoint that was refused.
func faulty(err error) *Problem {
	var faults []FieldError
	for _, text := range faultsOf(err) {
		text = beginning.ReplaceAllString(text, "")
		faults = append(faults, FieldError{fieldOf(text), text})
	}
	return invalidFields(faults...)
}

// beginning is what is put before the faults of an endpoint: the caller knows which it is.
var beginning = regexp.MustCompile(`^(?:(?:change )?endpoint "[^"]*": )+`)

// faultsOf takes an error apart into what was joined.
func faultsOf(err error) []string {
	for e := err; e != nil; e = errors.Unwrap(e) {
		joined, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		var all, texts []string
		for _, one := range joined.Unwrap() {
			all, texts = append(all, faultsOf(one)...), append(texts, one.Error())
		}
		if e.Error() == strings.Join(texts, "\n") { // joined, and not one text around two errors
			return all
		}
	}
	return []string{err.Error()}
}

// named are the fields by the word with which a fault of theirs begins.
var named = []struct{ word, field string }{
	{"backoff", "backoff"},
	{"client_errors", "client_errors"},
	{"concurrency", "concurrency"},
	{"event", "events"},
	{"header", "headers"},
	{"id", "id"},
	{"metadata", "metadata"},
	{"rate", "rate"},
	{"reason", "reason"},
	{"retiring", "secret"},
	{"secret", "secret"},
	{"state", "state"},
	{"tenant", "tenant"},
	{"timeout", "timeout"},
	{"tls", "tls"},
	{"url", "url"},
}

var firstWord = regexp.MustCompile(`^[a-z_]+`)

// fieldOf names the field that a fault is about, "" if it is not known.
func fieldOf(fault string) string {
	word := firstWord.FindString(fault)
	for _, n := range named {
		if word == n.word || word == n.word+"s" {
			return n.field
		}
	}
	return ""
}

// stateReason reads why somebody pauses or disables an endpoint.
func (o object) stateReason() (string, error) {
	var reason string
	if err := o.read(map[string]reader{"reason": into(&reason)}); err != nil {
		return "", err
	}
	if err := webhook.StatePaused.Check(reason); err != nil {
		return "", invalid("reason", err.Error())
	}
	return reason, nil
}
