package dlqcmd

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

// pageSize is how many entries are read from the store at once.
const pageSize = 200

func (t *tool) listCommand() *cobra.Command {
	var f filterFlags
	var limit int
	var after string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List entries, newest first",
		Long: `Lists entries, newest first, without their payloads. Where there are more than --limit, the cursor of the next page is printed on
standard error, and is "next" in JSON: pass it to --after. From the broker's own queues it lists a sample, in their order.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			if limit < 0 {
				return cli.Refuse("--limit %d: must not be negative; 0 lists all", limit)
			}
			return t.list(cmd, filter, after, limit)
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most this `many`; 0 lists all")
	cmd.Flags().StringVar(&after, "after", "", "`cursor` of the page before")
	return cmd
}

// entryList is the JSON form of a list.
type entryList struct {
	Entries []dlq.Entry `json:"entries"`
	// Next is the cursor of the next page, "" on the last.
	Next string `json:"next"`
	// Sample is there where only some could be looked at.
	Sample *sample `json:"sample,omitempty"`
}

func (t *tool) list(cmd *cobra.Command, f dlq.Filter, after string, limit int) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	page, err := s.letters.list(cmd.Context(), f, after, limit)
	if err != nil {
		return placed(err)
	}
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, page)
	}
	rows := make([][]string, len(page.Entries))
	for i, e := range page.Entries {
		rows[i] = []string{
			e.ID, string(e.State), cli.Time(e.StoredAt), e.Queue, e.Kind, cli.OrDash(e.Destination), string(e.Cause),
			strconv.Itoa(e.AttemptCount), cli.Cut(headline(e.Error), 60),
		}
	}
	err = cli.Table(t.IO.Out, []string{"ID", "STATE", "STORED", "QUEUE", "KIND", "DESTINATION", "CAUSE", "ATTEMPTS", "ERROR"}, rows)
	if err == nil && page.Next != "" {
		fmt.Fprintf(t.IO.Err, "there are more: --after %s\n", page.Next)
	}
	t.noteSample(page.Sample)
	return err
}

// placed makes a page that goes on from nowhere a mistake of the command line.
func placed(err error) error {
	if errors.Is(err, dlq.ErrCursor) {
		return cli.Fail(cli.Usage, fmt.Errorf("--after: %w: give what the page before has printed", err))
	}
	return err
}

// noteSample says that there is more than was looked at.
func (t *tool) noteSample(s *sample) {
	if s != nil && !s.Complete {
		fmt.Fprintf(t.IO.Err, "a sample: the first %d dead letters in the broker were looked at, there are more\n", s.Looked)
	}
}
