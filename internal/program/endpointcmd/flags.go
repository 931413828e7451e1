package endpointcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// fieldFlags are the flags that set an endpoint's fields. They become the JSON that the API takes, so that both mean the same.
type fieldFlags struct {
	tenant, url, clientErrors, timeout, backoff string
	events, headers, metadata                   []string
	concurrency                                 int
	rate                                        float64
	allowHTTP, ordered, shared, adaptive        bool
	certificate, key, authorities               string
}

// register adds the flags. Those of an edit can take entries out as well.
func (f *fieldFlags) register(cmd *cobra.Command, edit bool) {
	flags := cmd.Flags()
	flags.SetNormalizeFunc(apiName)
	remove := ""
	if edit {
		flags.StringVar(&f.url, "url", "", "`URL` to POST to")
		remove = "; without = takes it out"
	}
	flags.StringVar(&f.tenant, "tenant", "", "`tenant` whose events it gets; without it default")
	flags.StringArrayVar(&f.events, "event", nil, "`pattern` of event types that it gets, such as invoice.paid, invoice.* or *; may be given several times, and replaces all that it had")
	flags.StringArrayVar(&f.headers, "header", nil, "`Name=value` to send with each delivery"+remove+"; may be given several times. Name=@FILE reads the value from a file")
	flags.StringVar(&f.clientErrors, "client-errors", "", "what 400, 401, 403, 404 and the like mean: `retry or reject`")
	flags.StringVar(&f.timeout, "timeout", "", "longest `duration` of one delivery, at most webhook.default.timeout; '' for that")
	flags.IntVar(&f.concurrency, "max-concurrency", 0, "`deliveries` at once in one worker; 0 for the default, 3")
	flags.Float64Var(&f.rate, "rate", 0, "`deliveries` per second in one worker; 0 for no limit")
	flags.StringVar(&f.backoff, "backoff", "", "`delays` between attempts, such as fixed(10s, 1m, 5m); default or '' for those of webhook.default.backoff")
	flags.BoolVar(&f.allowHTTP, "allow-http", false, "permit a URL without TLS")
	flags.BoolVar(&f.ordered, "ordered", false, "deliver one event after the other")
	flags.BoolVar(&f.shared, "shared", false, "have all workers share its breaker and rate")
	flags.BoolVar(&f.adaptive, "adaptive", false, "have the concurrency find itself")
	flags.StringVar(&f.certificate, "tls-cert", "", "`file` with the certificate that we show (PEM); '' for none")
	flags.StringVar(&f.key, "tls-key", "", "`file` with its key (PEM); '' for none")
	flags.StringVar(&f.authorities, "tls-ca", "", "`file` with the authorities of the receiver's certificate (PEM); '' for the system's")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "`name=value` of your own"+remove+"; may be given several times")
}

// apiName lets flags be written with the names that the API has.
func apiName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "concurrency":
		name = "max-concurrency"
	case "events":
		name = "event"
	}
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

// fields returns what was given, by the API's names.
func (f *fieldFlags) fields(cmd *cobra.Command, edit bool) (map[string]any, error) {
	out := map[string]any{}
	given := cmd.Flags().Changed
	for _, field := range []struct {
		flag, name string
		value      any
	}{
		{"url", "url", f.url},
		{"tenant", "tenant", f.tenant},
		{"event", "events", f.events},
		{"client-errors", "client_errors", f.clientErrors},
		{"timeout", "timeout", f.timeout},
		{"max-concurrency", "concurrency", f.concurrency},
		{"rate", "rate", f.rate},
		{"backoff", "backoff", f.backoff},
		{"allow-http", "allow_http", f.allowHTTP},
		{"ordered", "ordered", f.ordered},
		{"shared", "shared", f.shared},
		{"adaptive", "adaptive", f.adaptive},
	} {
		if given(field.flag) {
			out[field.name] = field.value
		}
	}
	var errs []error
	add := func(flag, name string, value map[string]any, err error) {
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		case len(value) > 0:
			out[name] = value
		}
	}
	headers, err := pairs(f.headers, edit, true)
	add("header", "headers", headers, err)
	metadata, err := pairs(f.metadata, edit, false)
	add("metadata", "metadata", metadata, err)
	tls := map[string]any{}
	for _, file := range []struct{ flag, name, path string }{
		{"tls-cert", "certificate", f.certificate},
		{"tls-key", "key", f.key},
		{"tls-ca", "root_cas", f.authorities},
	} {
		if !given(file.flag) {
			continue
		}
		text, err := contents(file.path)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", file.flag, err))
		}
		tls[file.name] = text
	}
	if len(tls) > 0 {
		out["tls"] = tls
	}
	return out, errors.Join(errs...)
}

// pairs reads name=value. In an edit a name alone takes the entry out. Errors show names, never values.
func pairs(given []string, edit, files bool) (map[string]any, error) {
	out := make(map[string]any, len(given))
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		switch _, twice := out[name]; {
		case twice:
			return nil, fmt.Errorf("%q is given twice", name)
		case name == "" || !ok && !edit:
			return nil, errors.New("write name=value")
		case !ok:
			out[name] = nil
			continue
		}
		if path, file := strings.CutPrefix(value, "@"); file && files {
			text, err := contents(path)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			value = strings.TrimRight(text, "\r\n")
		}
		out[name] = value
	}
	return out, nil
}

func contents(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// document returns fields as the JSON that the API takes.
func document(fields map[string]any) ([]byte, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the endpoint: %w", err)
	}
	return text, nil
}
