package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/cli"
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
standard error, and is "next" in JSON: pass it to --after.`,
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
}

func (t *tool) list(cmd *cobra.Command, f dlq.Filter, after string, limit int) (err error) {
	s, err := t.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	page := entryList{Entries: []dlq.Entry{}}
	page.Next, err = eachEntry(cmd.Context(), s.DeadLetters, f, after, limit, func(e dlq.Entry) error {
		page.Entries = append(page.Entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	if t.settings.JSON {
		return cli.JSON(t.io.Out, page)
	}
	rows := make([][]string, len(page.Entries))
	for i, e := range page.Entries {
		rows[i] = []string{
			e.ID, string(e.State), cli.Time(e.StoredAt), e.Queue, e.Kind, cli.OrDash(e.Destination), string(e.Cause),
			strconv.Itoa(e.AttemptCount), cli.Cut(headline(e.Error), 60),
		}
	}
	err = cli.Table(t.io.Out, []string{"ID", "STATE", "STORED", "QUEUE", "KIND", "DESTINATION", "CAUSE", "ATTEMPTS", "ERROR"}, rows)
	if err == nil && page.Next != "" {
		fmt.Fprintf(t.io.Err, "there are more: --after %s\n", page.Next)
	}
	return err
}

// eachEntry visits matching entries, without their messages, at most limit of them (0 for all), and returns the next page's cursor.
func eachEntry(ctx context.Context, store dlq.Store, f dlq.Filter, after string, limit int, visit func(dlq.Entry) error) (string, error) {
	for seen := 0; ; {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-seen)
		}
		entries, next, err := store.List(ctx, f, after, size)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if err := visit(e); err != nil {
				return "", err
			}
		}
		seen += len(entries)
		if next == "" || seen == limit {
			return next, nil
		}
		after = next
	}
}
