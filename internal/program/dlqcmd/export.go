package dlqcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

func (t *tool) exportCommand() *cobra.Command {
	var f filterFlags
	var output string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write entries with their payloads as JSON lines",
		Long: `Writes the selected entries, newest first, one JSON object a line: what show --json prints, with the payload as base64, byte for byte.
Entries stay as they are. From the broker's own queues it writes at most the first 10,000, and exits with 4 if there are more. --output takes its name only when it is complete.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			return t.export(cmd, filter, output)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write; standard output if it is not given")
	return cmd
}

func (t *tool) export(cmd *cobra.Command, f dlq.Filter, output string) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	defer func() { err = errors.Join(err, s.unknown(cmd.Context(), f)) }()
	record, err := s.begin(cmd.Context(), newID("export"), "export", f, 0)
	if err != nil {
		return err
	}
	n, rest := 0, ""
	defer func() { err = record.end(cmd.Context(), audit.Counts{Done: n}, err) }()
	write := func(w io.Writer) error {
		n, rest, err = exportTo(cmd.Context(), s.letters, f, w)
		return err
	}
	if output == "" {
		err = write(t.IO.Out)
	} else if err = writeFile(output, write); err == nil {
		fmt.Fprintf(t.IO.Err, "exported %d entries to %s\n", n, output)
	}
	if err == nil && rest != "" {
		return cli.Fail(cli.Partial, errors.New(rest))
	}
	return err
}

// exportTo writes matching entries. It returns how many, and what was left out.
func exportTo(ctx context.Context, from letters, f dlq.Filter, w io.Writer) (n int, rest string, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	rest, err = from.each(ctx, f, func(e dlq.Entry) error {
		n++
		return cli.JSON(out, recordOf(e))
	})
	if err != nil {
		return n, "", err
	}
	if err := out.Flush(); err != nil {
		return n, "", fmt.Errorf("write export: %w", err)
	}
	return n, rest, nil
}

// writeFile gives the file its name only when write has succeeded and the bytes are on the disk.
func writeFile(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return cli.Refuse("--output %s: is no regular file and would be replaced by one: redirect standard output to it instead", name)
	}
	partial := name + ".partial"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(partial, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("export: %w", err), os.Remove(partial))
	}
	return nil
}
