package dlqcmd

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/jsonmatch"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// filterFlags select entries. All commands that take many entries share them.
type filterFlags struct {
	ids, states, jsonPaths                                   []string
	job, queue, kind, destination, cause, fingerprint, since string
	until, text                                              string
	all                                                      bool

	given *pflag.FlagSet
}

// selecting are the flags that make a filter.
var selecting = []string{"id", "job", "state", "json-path", "queue", "kind", "destination", "cause", "fingerprint", "since", "until", "text"}

func (f *filterFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.given = flags
	flags.StringArrayVar(&f.ids, "id", nil, "these entry `ids`; several with commas, in lines, or with several flags")
	flags.StringVar(&f.job, "job", "", "all runs of the job with this `id`; with --state all also those that were replayed or purged")
	flags.StringArrayVar(&f.jsonPaths, "json-path", nil, "entries whose JSON payload has this value, like `'$.customer.id=42'`; $.a.b, $[0], $.items[*].sku; several must all match")
	flags.StringSliceVar(&f.states, "state", nil, "entries in these `states`: "+join(dlq.States())+", or all (default dead)")
	flags.StringVar(&f.queue, "queue", "", "entries of this `queue`")
	flags.StringVar(&f.kind, "kind", "", "entries of this `kind`")
	flags.StringVar(&f.destination, "destination", "", "entries for this `destination`")
	flags.StringVar(&f.cause, "cause", "", "entries with this `cause`: "+join(dlq.Causes()))
	flags.StringVar(&f.fingerprint, "fingerprint", "", "entries whose error has this `fingerprint` (see groups)")
	flags.StringVar(&f.since, "since", "", "entries stored since this `time`: RFC 3339, or how long ago (2h)")
	flags.StringVar(&f.until, "until", "", "entries stored before this `time`: RFC 3339, or how long ago (30m)")
	flags.StringVar(&f.text, "text", "", "entries whose error contains this `text`")
}

// registerAll adds the flag that stands for no filter, to commands that change entries.
func (f *filterFlags) registerAll(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "all entries, where no other flag selects some")
}

// filter returns what the flags select.
func (f *filterFlags) filter(now time.Time) (dlq.Filter, error) {
	out := dlq.Filter{
		Job: f.job, Queue: f.queue, Kind: f.kind, Destination: f.destination, Fingerprint: f.fingerprint,
		Cause: dlq.Cause(f.cause), Text: f.text,
	}
	errs := f.empty(selecting...)
	for _, text := range f.ids {
		ids, err := split(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--id %q: %w", text, err))
		}
		out.IDs = append(out.IDs, ids...)
	}
	for _, s := range f.states {
		switch state := dlq.State(s); {
		case s == "": // empty has said so
		case s == "all":
			out.States = dlq.States()
		case slices.Contains(dlq.States(), state):
			out.States = append(out.States, state)
		default:
			errs = append(errs, fmt.Errorf("--state %q: use %s, or all", s, join(dlq.States())))
		}
	}
	if f.cause != "" && !slices.Contains(dlq.Causes(), out.Cause) {
		errs = append(errs, fmt.Errorf("--cause %q: use one of %s", f.cause, join(dlq.Causes())))
	}
	for _, text := range f.jsonPaths {
		if text == "" {
			continue // empty has said so
		}
		m, err := jsonmatch.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--json-path %q: %w", text, err))
		}
		out.JSON = append(out.JSON, m)
	}
	var err error
	if f.since != "" {
		if out.Since, err = cli.ParseWhen(f.since, now, -1); err != nil {
			errs = append(errs, fmt.Errorf("--since: %w", err))
		}
	}
	if f.until != "" {
		if out.Until, err = cli.ParseWhen(f.until, now, -1); err != nil {
			errs = append(errs, fmt.Errorf("--until: %w", err))
		}
	}
	if !out.Since.IsZero() && !out.Until.IsZero() && !out.Since.Before(out.Until) {
		errs = append(errs, errors.New("--since is not before --until: nothing can match"))
	}
	if err := errors.Join(errs...); err != nil {
		return out, cli.Fail(cli.Usage, err)
	}
	if err := out.Validate(); err != nil {
		return out, cli.Fail(cli.Usage, err)
	}
	return out, nil
}

// split reads ids with commas between them, quoted as in CSV where they have commas themselves, in one line or in many.
func split(text string) ([]string, error) {
	if text == "" {
		return nil, nil // empty has said so
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%w: an id with a comma or a quote in it is written in quotes, \"a\"\"b\" for a\"b", err)
	}
	ids := slices.Concat(lines...)
	for i, id := range ids {
		if ids[i] = strings.TrimSpace(id); ids[i] == "" {
			return nil, errors.New("an id in it is empty")
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("has no id in it")
	}
	return ids, nil
}

// empty refuses flags that were given without a value, as a variable that is not set leaves them in a script: they would select
// more than was meant.
func (f *filterFlags) empty(names ...string) (errs []error) {
	for _, name := range names {
		flag := f.given.Lookup(name)
		blank := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			blank = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if flag.Changed && blank {
			errs = append(errs, fmt.Errorf("--%s: is empty: give it a value, or leave it out", name))
		}
	}
	return errs
}

// chosen is filter for commands that change entries: it refuses to take everything unless that was asked for.
func (f *filterFlags) chosen(now time.Time) (dlq.Filter, error) {
	out, err := f.filter(now)
	if err != nil {
		return out, err
	}
	narrow := len(f.ids)+len(f.jsonPaths) > 0 || f.job+f.queue+f.kind+f.destination+f.cause+f.fingerprint+f.since+f.until+f.text != ""
	switch {
	case !narrow && !f.all:
		return out, cli.Refuse("nothing was selected: give a filter such as --id, --kind or --fingerprint, or --all")
	case narrow && f.all:
		return out, cli.Refuse("--all and a filter exclude each other: keep one")
	}
	return out, nil
}

func join[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
