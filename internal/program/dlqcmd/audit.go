package dlqcmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/dlq/audit"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

func (t *tool) auditCommand() *cobra.Command {
	var limit int
	var after string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who replayed, purged, imported and exported what, and when",
		Long: `Lists the records of replays, purges, imports and exports, newest first: who asked for it, when, with which filter, and how many entries
it was about. A record is made before the first entry is touched; one whose process was killed says interrupted. Records are kept in the
dead-letter store, for 400 days. Dry runs are not recorded.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Refuse("--limit %d: must be at least 1", limit)
			}
			return t.audit(cmd, after, limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "list at most this `many`")
	cmd.Flags().StringVar(&after, "after", "", "`cursor` of the page before")
	return cmd
}

// auditList is the JSON form of a page of records.
type auditList struct {
	Audits []audit.Record `json:"audits"`
	// Next is the cursor of the next page, "" on the last.
	Next string `json:"next"`
}

func (t *tool) audit(cmd *cobra.Command, after string, limit int) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	log := s.auditLog()
	if log == nil {
		return t.call.needsStore("audit")
	}
	var page auditList
	if page.Audits, page.Next, err = log.Audits(cmd.Context(), after, limit); err != nil {
		return placed(err)
	}
	page.Audits = append([]audit.Record{}, page.Audits...)
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, page)
	}
	rows := make([][]string, len(page.Audits))
	for i, a := range page.Audits {
		rows[i] = []string{
			cli.Time(a.StartedAt), a.Action, a.Actor, string(a.State), strconv.Itoa(a.Planned), strconv.Itoa(a.Done), strconv.Itoa(a.Failed),
			strconv.Itoa(a.Refused), a.ID, cli.Cut(a.Filter, 80), cli.OrDash(cli.Cut(headline(a.Problem), 60)),
		}
	}
	err = cli.Table(t.IO.Out, []string{"STARTED", "ACTION", "ACTOR", "STATE", "PLANNED", "DONE", "FAILED", "REFUSED", "ID", "FILTER", "PROBLEM"}, rows)
	if err == nil && page.Next != "" {
		fmt.Fprintf(t.IO.Err, "there are more: --after %s\n", page.Next)
	}
	return err
}

// auditLog is where operations are recorded; nil where dead letters live in the broker.
func (s *session) auditLog() audit.Log {
	log, _ := s.store.(audit.Log)
	return log
}

// recorder keeps the record of one operation. A nil log records nothing.
type recorder struct {
	log  audit.Log
	id   string
	told time.Time
}

// recordEvery is how often a record says that its operation is alive.
const recordEvery = 2 * time.Second

// begin records an operation. What cannot be recorded must not begin.
func (s *session) begin(ctx context.Context, id, action string, f dlq.Filter, planned int) (*recorder, error) {
	r := &recorder{log: s.auditLog(), id: id, told: time.Now()}
	if r.log == nil {
		return r, nil
	}
	_, err := r.log.BeginAudit(ctx, audit.Record{ID: id, Action: action, Actor: cli.Actor(), Filter: filterText(f), Planned: planned})
	if err != nil {
		return nil, fmt.Errorf("record the %s in the audit log, without which nothing is begun: %w", action, err)
	}
	return r, nil
}

// alive tells now and then how far the operation came. A record that cannot be written now is written at the end.
func (r *recorder) alive(ctx context.Context, c audit.Counts) {
	if r.log == nil || time.Since(r.told) < recordEvery {
		return
	}
	r.told = time.Now()
	_ = r.log.UpdateAudit(context.WithoutCancel(ctx), r.id, c)
}

// end closes the record and returns problem, the end of the operation, joined with what went wrong with the record.
func (r *recorder) end(ctx context.Context, c audit.Counts, problem error) error {
	if r.log == nil {
		return problem
	}
	return audit.Finish(ctx, r.log, r.id, c, problem)
}

// newID names an operation.
func newID(action string) string { return action + "-" + rand.Text() }

// filterText is a filter as the log keeps it: JSON, or "all" for everything that is dead.
func filterText(f dlq.Filter) string {
	text, err := json.Marshal(f)
	if err != nil {
		return err.Error()
	}
	if everything(f) {
		return "all"
	}
	return strings.TrimSpace(string(text))
}

// everything reports whether f selects all that is dead.
func everything(f dlq.Filter) bool {
	text, err := json.Marshal(f)
	return err == nil && string(text) == "{}"
}
