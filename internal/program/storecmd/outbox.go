package storecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/queue/outbox"
)

func (p *program) outboxCommand() *cobra.Command {
	var limit int
	var all, yes bool
	status := &cobra.Command{
		Use:   "status",
		Short: "Count the jobs that are committed and not yet published",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.onOutbox(cmd, p.outboxStatus)
		},
	}
	refused := &cobra.Command{
		Use:   "refused",
		Short: "List the jobs that the broker has refused, and why",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Refuse("--limit %d: list 1 at least", limit)
			}
			return p.onOutbox(cmd, func(ctx context.Context, db *backends.Postgres, box *outbox.Box) error {
				return p.outboxRefused(ctx, db, box, limit)
			})
		},
	}
	refused.Flags().IntVar(&limit, "limit", 100, "how `many` to list, those that are not tried again first")
	retry := &cobra.Command{
		Use:   "retry [ROW...]",
		Short: "Have refused jobs tried again at once",
		Args:  cli.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := p.outboxRows(args)
			switch {
			case err != nil:
				return err
			case all && len(rows) > 0:
				return cli.Refuse("rows and --all exclude each other: keep one")
			case !all && len(rows) == 0:
				return cli.Refuse("name the rows to try again (see %s outbox refused), or all of them with --all", p.Name)
			}
			return p.onOutbox(cmd, func(ctx context.Context, db *backends.Postgres, box *outbox.Box) error {
				n, err := box.Retry(ctx, db.Pool, rows...)
				return p.outboxChanged(len(rows), n, "retried", "%s will be tried again as soon as a relay looks", err)
			})
		},
	}
	retry.Flags().BoolVar(&all, "all", false, "all refused jobs")
	discard := &cobra.Command{
		Use:   "discard ROW...",
		Short: "Delete refused jobs, which are lost then",
		Args:  cli.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := p.outboxRows(args)
			switch {
			case err != nil:
				return err
			case len(rows) == 0:
				return cli.Refuse("name the rows to delete (see %s outbox refused)", p.Name)
			}
			return p.onOutbox(cmd, func(ctx context.Context, db *backends.Postgres, box *outbox.Box) error {
				question := fmt.Sprintf("Delete %s for good? Nobody will run them, unless a relay is publishing one just now.", cli.Count(len(rows), "refused job"))
				if err := cli.Confirm(ctx, p.IO, yes, question, "outbox refused"); err != nil {
					return err
				}
				n, err := box.Discard(ctx, db.Pool, rows...)
				return p.outboxChanged(len(rows), n, "discarded", "deleted %s", err)
			})
		},
	}
	discard.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cli.Group(&cobra.Command{
		Use:   "outbox",
		Short: "Look after the jobs that transactions left in the outbox",
		Long: p.Text(`Looks after the jobs that were enqueued in transactions (the store postgres) and are not published yet. A relay publishes them: PROGRAM relay,
or a worker with outbox.relay.`),
	}, status, refused, retry, discard)
}

// onOutbox hands the outbox of the configured database to do.
func (p *program) onOutbox(cmd *cobra.Command, do func(context.Context, *backends.Postgres, *outbox.Box) error) error {
	return p.onDatabase(cmd, 15*time.Second, func(ctx context.Context, db *backends.Postgres) error {
		if err := db.Ready(ctx); err != nil {
			return err
		}
		box, err := outbox.New(outbox.Config{Schema: db.Schema})
		if err != nil {
			return err
		}
		return do(ctx, db, box)
	})
}

func (p *program) outboxRows(args []string) ([]int64, error) {
	rows := make([]int64, len(args))
	for i, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 1 {
			return nil, cli.Refuse("row %q: give the number that %s outbox refused shows", arg, p.Name)
		}
		rows[i] = n
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// outboxState is the JSON form of status.
type outboxState struct {
	Fresh   int64 `json:"fresh"`
	Waiting int64 `json:"waiting"`
	Stuck   int64 `json:"stuck"`
	// Oldest is the age of the oldest in seconds.
	Oldest float64 `json:"oldest_seconds"`
}

func (p *program) outboxStatus(ctx context.Context, db *backends.Postgres, box *outbox.Box) error {
	s, err := box.Stats(ctx, db.Pool)
	if err != nil {
		return err
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, outboxState{s.Fresh, s.Waiting, s.Stuck, s.Oldest.Seconds()})
	}
	oldest := "-"
	if s.Pending() > 0 {
		oldest = s.Oldest.Round(time.Millisecond).String()
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return cli.Table(p.IO.Out, []string{"FRESH", "WAITING", "STUCK", "OLDEST"}, [][]string{{number(s.Fresh), number(s.Waiting), number(s.Stuck), oldest}})
}

// refusedJob is the JSON form of one line of refused.
type refusedJob struct {
	Row      int64      `json:"row"`
	Job      string     `json:"job,omitempty"`
	Queue    string     `json:"queue"`
	Key      string     `json:"ordering_key,omitempty"`
	Created  time.Time  `json:"created"`
	Tried    time.Time  `json:"tried"`
	Attempts int        `json:"attempts"`
	Next     *time.Time `json:"next,omitempty"`
	Stuck    bool       `json:"stuck"`
	Size     int        `json:"size"`
	Error    string     `json:"error"`
}

func (p *program) outboxRefused(ctx context.Context, db *backends.Postgres, box *outbox.Box, limit int) error {
	found, err := box.Refused(ctx, db.Pool, limit)
	if err != nil {
		return err
	}
	jobs := make([]refusedJob, len(found))
	rows := make([][]string, len(found))
	for i, r := range found {
		j := refusedJob{
			Row: r.ID, Job: r.Job(), Queue: r.Queue, Key: r.OrderingKey, Created: r.Created, Tried: r.Tried, Attempts: r.Attempts, Stuck: r.Stuck,
			Size: r.Size, Error: r.Error,
		}
		next := "never"
		if !r.Next.IsZero() && !r.Stuck {
			j.Next, next = &r.Next, cli.Time(r.Next)
		}
		jobs[i] = j
		rows[i] = []string{strconv.FormatInt(j.Row, 10), cli.OrDash(cli.OneLine(j.Job)), j.Queue, strconv.Itoa(j.Attempts), cli.Time(j.Tried), next, cli.Cut(cli.OneLine(j.Error), 100)}
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, map[string]any{"refused": jobs})
	}
	return cli.Table(p.IO.Out, []string{"ROW", "JOB", "QUEUE", "ATTEMPTS", "TRIED", "NEXT", "ERROR"}, rows)
}

// outboxChanged tells how many of the asked rows were changed; asked is 0 for all.
func (p *program) outboxChanged(asked int, n int64, what, text string, err error) error {
	switch {
	case err != nil && n == 0:
		return err
	case err != nil:
		err = cli.Fail(cli.Partial, err)
	case n < int64(asked):
		err = cli.Fail(cli.Partial, fmt.Errorf("%s not refused, or not there any more", cli.Count(asked-int(n), "row")))
	}
	if p.Settings.JSON {
		return errors.Join(cli.JSON(p.IO.Out, map[string]int64{what: n}), err)
	}
	_, printErr := fmt.Fprintln(p.IO.Out, strings.ReplaceAll(text, "%s", cli.Count(int(n), "refused job")))
	return errors.Join(printErr, err)
}
