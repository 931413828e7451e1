package dlqcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/dlq/brokerdlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue"
)

func (t *tool) importCommand() *cobra.Command {
	var f filterFlags
	var yes, dryRun bool
	var from string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Move dead letters from the broker's own queues, or copy an export, into a store",
		Long: `Moves the selected dead letters from the broker's own dead-letter queues into the configured store, or into the file of --store, which is
made if it is missing. Each is stored before it leaves the broker, so that nothing is lost whenever the tool is stopped, and repeating the
command is safe. Where a store is in use anyway, it collects what the broker itself has moved away.

--from reads a file that export has written instead. Entries that the store has, in whatever state, stay there as they are.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.chosen(time.Now())
			if err != nil {
				return err
			}
			if errs := f.empty("from"); len(errs) > 0 {
				return cli.Fail(cli.Usage, errors.Join(errs...))
			}
			return t.importInto(cmd, filter, from, yes, dryRun)
		},
	}
	f.register(cmd)
	f.registerAll(cmd)
	cmd.Flags().StringVar(&from, "from", "", "`file` that export has written")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count")
	return cmd
}

// importResult is the JSON form of an import.
type importResult struct {
	DryRun bool `json:"dry_run"`
	// Matched is how many would be imported, for a dry run.
	Matched  int `json:"matched,omitempty"`
	Imported int `json:"imported"`
	// Restored were stored and stay in the broker: copies (dlq.mirror) of entries that the store does not have.
	Restored int `json:"restored,omitempty"`
	Failed   int `json:"failed,omitempty"`
	// Pass and Sample are there for the broker's own queues.
	*brokerdlq.ScanReport
	Sample *sample `json:"sample,omitempty"`
}

func (t *tool) importInto(cmd *cobra.Command, f dlq.Filter, from string, yes, dryRun bool) (err error) {
	ctx := cmd.Context()
	if dryRun {
		t.store = "" // it need not exist to count what would go there
	}
	s, err := t.open(cmd, backends.Create)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.store == nil && !dryRun {
		return cli.Refuse("import needs a store, and dead letters live in the broker here: name a file with --store FILE")
	}
	var result importResult
	switch {
	case from != "" && dryRun:
		result, err = importFile(ctx, from, s.store, f, true)
	case from != "":
		result, err = s.recorded(ctx, f, func() (importResult, error) { return importFile(ctx, from, s.store, f, false) })
	default:
		result, err = t.importFromBroker(ctx, s, f, yes, dryRun)
	}
	if err != nil && result.Imported+result.Restored+result.Failed == 0 {
		return err
	}
	if err := t.printImport(result); err != nil {
		return err
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: %d entries were imported; run the same command again to go on", result.Imported))
	case err != nil && result.Imported+result.Restored > 0:
		return cli.Fail(cli.Partial, err)
	}
	return err
}

func (t *tool) importFromBroker(ctx context.Context, s *session, f dlq.Filter, yes, dryRun bool) (importResult, error) {
	queues, err := s.inBroker()
	if err != nil {
		return importResult{}, err
	}
	b := brokerLetters{queues, t.call}
	if dryRun {
		found, note, err := b.sample(ctx, f, 0)
		return importResult{DryRun: true, Matched: len(found), Sample: note}, err
	}
	what, _, err := b.scope(ctx, f)
	if err != nil {
		return importResult{}, err
	}
	if err := t.confirm(ctx, yes, "Move "+what+" into the store?"); err != nil {
		return importResult{}, err
	}
	return s.recorded(ctx, f, func() (importResult, error) {
		report, err := queues.Import(ctx, s.store, f)
		return importResult{Imported: report.Imported, Restored: report.Restored, Failed: report.Failed, ScanReport: &report.ScanReport}, err
	})
}

// recorded imports under a record in the audit log.
func (s *session) recorded(ctx context.Context, f dlq.Filter, do func() (importResult, error)) (importResult, error) {
	record, err := s.begin(ctx, newID("import"), "import", f, 0)
	if err != nil {
		return importResult{}, err
	}
	result, err := do()
	return result, record.end(ctx, audit.Counts{Done: result.Imported + result.Restored, Failed: result.Failed}, err)
}

func (t *tool) printImport(r importResult) error {
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, r)
	}
	text := "imported " + entriesText(r.Imported)
	if r.DryRun {
		text = "would import " + entriesText(r.Matched)
		t.noteSample(r.Sample)
	}
	if r.Restored > 0 {
		text += fmt.Sprintf(", %d more from copies, which stay in the broker", r.Restored)
	}
	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.ScanReport != nil && r.PassedOver > 0 {
		text += fmt.Sprintf(", %d did not match", r.PassedOver)
	}
	_, err := fmt.Fprintln(t.IO.Out, text)
	return err
}

// importFile puts what an export holds into a store.
func importFile(ctx context.Context, name string, store dlq.Store, f dlq.Filter, dryRun bool) (result importResult, err error) {
	file, err := os.Open(name)
	if err != nil {
		return result, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	result.DryRun = dryRun
	lines := json.NewDecoder(file)
	for n := 1; ctx.Err() == nil; n++ {
		var r record
		err := lines.Decode(&r)
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if err != nil {
			return result, fmt.Errorf("%s, entry %d: %w", name, n, err)
		}
		e := r.entry()
		if !f.Matches(e) {
			continue
		}
		if dryRun {
			result.Matched++
			continue
		}
		if err := store.Put(ctx, []dlq.Entry{e})[0]; err != nil {
			result.Failed++
			return result, fmt.Errorf("%s, entry %d: %w", name, n, err)
		}
		result.Imported++
	}
	return result, ctx.Err()
}

// entry is the inverse of recordOf.
func (r record) entry() dlq.Entry {
	e := r.Entry
	e.Message = queue.Message{Body: r.Payload, Headers: r.Headers}
	for name, value := range r.HeadersBase64 {
		if e.Message.Headers == nil {
			e.Message.Headers = map[string]string{}
		}
		e.Message.Headers[name] = string(value)
	}
	return e
}
