package endpointcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/webhook"
)

// imported is one endpoint of a file.
type imported struct {
	line     int
	fields   map[string]json.RawMessage
	endpoint webhook.Endpoint
}

func (p *program) importCommand() *cobra.Command {
	var update bool
	var secretsTo string
	cmd := &cobra.Command{
		Use:   "import FILE | -",
		Short: "Add many endpoints from JSON lines or YAML",
		Long: `Adds the endpoints of a file, in the form that the API takes: one JSON object a line, or a YAML list of maps. All are checked, and those that
exist are found, before the first is added.

A line without a secret has one made. No command shows it again, so that it needs a place: with --secrets-to FILE the made secrets go to a new file,
one {"id", "secret"} a line; else --json prints each new endpoint with its secret.

With --update endpoints that exist are changed: what a line leaves out stays, as with edit. Their secrets stay; a line for one may not have any.

It prints one line per endpoint as it is done.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := p.readImport(args[0])
			if err != nil {
				return err
			}
			file.update, file.secretsTo = update, secretsTo
			return p.with(cmd, needs{mode: backends.Create}, func(ctx context.Context, s *session) error { return p.importAll(ctx, s, file) })
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "change endpoints that exist")
	cmd.Flags().StringVar(&secretsTo, "secrets-to", "", "new `file` that takes the secrets that are made")
	return cmd
}

// importFile is what is to be imported, and how.
type importFile struct {
	list      []imported
	faults    faults
	update    bool
	secretsTo string
}

// maxImport bounds a file, in bytes.
const maxImport = 256 << 20

func (p *program) readImport(name string) (*importFile, error) {
	in := p.IO.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, cli.Refuse("import: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("import: %w", err)
	case len(text) > maxImport:
		return nil, cli.Refuse("import: the file has more than %d bytes: cut it in pieces", maxImport)
	}
	file := parseImport(text)
	if len(file.list)+len(file.faults.list) == 0 {
		return nil, cli.Refuse("import: there is no endpoint in the file")
	}
	return file, nil
}

// parseImport reads all endpoints, and what is wrong with which line. An object at the beginning means JSON lines.
func parseImport(text []byte) *importFile {
	lines := yamlItems
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		lines = jsonLines
	}
	file := &importFile{}
	seen := map[string]int{}
	lines(text, &file.faults, func(line int, item []byte) {
		one := imported{line: line}
		var err error
		if one.endpoint, err = webhookapi.ParseEndpoint(item); err != nil {
			file.faults.add(line, err)
			return
		}
		if err := json.Unmarshal(item, &one.fields); err != nil {
			file.faults.add(line, errors.New("is not JSON"))
			return
		}
		if before, twice := seen[one.endpoint.ID]; twice {
			file.faults.add(line, fmt.Errorf("endpoint %q is in line %d, too", one.endpoint.ID, before))
		}
		seen[one.endpoint.ID] = line
		file.list = append(file.list, one)
	})
	return file
}

// jsonLines hands over each line that is not empty.
func jsonLines(text []byte, _ *faults, each func(line int, item []byte)) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) > 0 {
			each(number, line)
		}
	}
}

// yamlItems hands over each map of a YAML list as JSON.
func yamlItems(text []byte, f *faults, each func(line int, item []byte)) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil { // a fault of syntax, which quotes no value
		f.add(0, fmt.Errorf("neither JSON lines nor YAML: %w: write one JSON object a line, or a YAML list of maps", err))
		return
	}
	if len(doc.Content) == 0 {
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.SequenceNode {
		f.add(root.Line, errors.New("must be a list of endpoints: begin each with a dash, as in - id: shop"))
		return
	}
	for _, n := range root.Content {
		var value map[string]any
		if err := n.Decode(&value); err != nil {
			f.add(n.Line, errors.New("is no map of an endpoint's fields, or has one twice"))
			continue
		}
		item, err := json.Marshal(value)
		if err != nil {
			f.add(n.Line, errors.New("has what JSON cannot carry: use texts as names"))
			continue
		}
		each(n.Line, item)
	}
}

// importAll checks everything against the registry, then changes it.
func (p *program) importAll(ctx context.Context, s *session, file *importFile) (err error) {
	plan, err := p.plan(ctx, s, file)
	if err != nil {
		return err
	}
	var made secretsFile
	if plan.making > 0 && file.secretsTo != "" {
		if made, err = newSecretsFile(file.secretsTo); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, made.close()) }()
	}
	for done, one := range file.list {
		if err := p.importOne(ctx, s, one, plan.exists[one.endpoint.ID], made); err != nil {
			return p.cutShort(file.list, done, fmt.Errorf("line %d: endpoint %q: %w", one.line, one.endpoint.ID, err))
		}
	}
	return nil
}

func (p *program) cutShort(list []imported, done int, err error) error {
	if done == 0 {
		return fmt.Errorf("import: %w", err)
	}
	return cli.Fail(cli.Partial, fmt.Errorf("import: %d of %d endpoints were done, and then: %w; repeat it with --update", done, len(list), err))
}

// importPlan is what an import will do.
type importPlan struct {
	exists map[string]bool
	making int // secrets
}

// plan finds those that exist, and all that would be refused.
func (p *program) plan(ctx context.Context, s *session, file *importFile) (importPlan, error) {
	plan := importPlan{exists: map[string]bool{}}
	for _, one := range file.list {
		entry, err := s.registry.Get(ctx, one.endpoint.ID)
		switch {
		case errors.Is(err, webhook.ErrUnknownEndpoint):
			if err = s.hooks.Check(one.endpoint); len(one.endpoint.Secrets) == 0 {
				plan.making++
			}
		case err != nil:
			return plan, err
		case !file.update:
			err = fmt.Errorf("endpoint %q exists: add --update to change it", one.endpoint.ID)
		default:
			plan.exists[one.endpoint.ID] = true
			var change webhookapi.Change
			if change, err = one.change(); err == nil {
				if err = change.Apply(&entry.Endpoint); err == nil {
					err = s.hooks.Check(entry.Endpoint)
				}
			}
		}
		file.faults.add(one.line, err)
	}
	if plan.making > 0 && !p.Settings.JSON && file.secretsTo == "" {
		file.faults.add(0, fmt.Errorf("%s without a secret, and nobody would see those that are made: add --secrets-to FILE or --json, or give each a secret",
			cli.Count(plan.making, "new endpoint")))
	}
	if err := file.faults.err(); err != nil {
		return plan, cli.Fail(cli.Usage, fmt.Errorf("import: nothing was changed: %w", err))
	}
	return plan, nil
}

// change is the line as an edit of the endpoint that it names.
func (one imported) change() (webhookapi.Change, error) {
	fields := make(map[string]any, len(one.fields))
	for name, value := range one.fields {
		if name != "id" {
			fields[name] = value
		}
	}
	text, err := document(fields)
	if err != nil {
		return webhookapi.Change{}, err
	}
	return webhookapi.ParseChange(text)
}

func (p *program) importOne(ctx context.Context, s *session, one imported, exists bool, secrets secretsFile) error {
	if !exists {
		made, err := s.registry.Add(ctx, one.endpoint)
		if err != nil {
			return err
		}
		if len(one.endpoint.Secrets) == 0 {
			if err := secrets.add(webhookapi.ShowNew(made)); err != nil {
				return err
			}
		}
		if p.Settings.JSON {
			return cli.JSON(p.IO.Out, webhookapi.ShowNew(made))
		}
		return p.printChanged(webhookapi.Show(made), "added")
	}
	change, err := one.change()
	if err != nil {
		return err
	}
	e, err := s.registry.Edit(ctx, one.endpoint.ID, 0, func(e *webhook.Endpoint) error { return change.Apply(e) })
	if err != nil {
		return err
	}
	return p.printChanged(webhookapi.Show(e), "changed")
}
