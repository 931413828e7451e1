package storecmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/migrations"
)

// Commands returns migrate and outbox.
func Commands(p *cli.Program) []*cobra.Command {
	own := &program{p}
	return []*cobra.Command{own.migrateCommand(), own.outboxCommand()}
}

type program struct{ *cli.Program }

func (p *program) migrateCommand() *cobra.Command {
	var steps int
	var yes bool
	var wait time.Duration
	up := &cobra.Command{
		Use:   "up",
		Short: "Make or upgrade the tables",
		Long: `Makes the schema and its tables if they are missing, and upgrades them if they are older than this program. Each step is applied whole or not
at all. Running it again, or several times at once, is safe. A database that does not answer is waited for (--wait).`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.onDatabase(cmd, wait, p.migrateUp)
		},
	}
	down := &cobra.Command{
		Use:   "down",
		Short: "Take back the newest steps; what their tables hold is lost",
		Long: `Takes back the newest steps, after a confirmation that says what is lost. Stop the workers first: they refuse to start on older tables, and
those that run meet missing ones.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 {
				return cli.Refuse("--steps %d: take back 1 at least", steps)
			}
			return p.onDatabase(cmd, wait, func(ctx context.Context, db *backends.Postgres) error { return p.migrateDown(ctx, db, steps, yes) })
		},
	}
	down.Flags().IntVar(&steps, "steps", 1, "how `many` steps to take back")
	down.Flags().BoolVar(&yes, "yes", false, "do not ask")
	status := &cobra.Command{
		Use:   "status",
		Short: "Show which steps the tables have seen; exit 5 if they do not fit this program",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.onDatabase(cmd, wait, p.migrateStatus)
		},
	}
	for _, cmd := range []*cobra.Command{up, down, status} {
		cmd.Flags().DurationVar(&wait, "wait", 15*time.Second, "how `long` to wait for a database that does not answer")
	}
	return cli.Group(&cobra.Command{
		Use:   "migrate",
		Short: "Make, upgrade or take back the tables of the store postgres",
		Long: `Makes, upgrades or takes back the tables of the store postgres, in postgres.schema. Workers and tools never do it by themselves: they refuse to
start on tables that are older or newer, with exit code 5.`,
	}, up, down, status)
}

// onDatabase opens the configured database and hands it to do once it answers.
func (p *program) onDatabase(cmd *cobra.Command, wait time.Duration, do func(context.Context, *backends.Postgres) error) (err error) {
	cfg, err := p.Load(cmd)
	if err != nil {
		return err
	}
	db, err := backends.OpenPostgres(cmd.Context(), cfg)
	if err != nil {
		return cli.Fail(cli.Usage, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Answers(cmd.Context(), wait); err != nil {
		return err
	}
	return do(cmd.Context(), db)
}

// migrateResult is the JSON form of up and down.
type migrateResult struct {
	Schema  string            `json:"schema"`
	Applied []migrations.Step `json:"applied,omitempty"`
	Undone  []migrations.Step `json:"undone,omitempty"`
	// Version is what the tables have now.
	Version int `json:"version"`
	Needs   int `json:"needs"`
}

func (p *program) migrateUp(ctx context.Context, db *backends.Postgres) error {
	done, err := migrations.Up(ctx, db.Pool, db.Schema)
	if err != nil && len(done) == 0 {
		return err
	}
	result := migrateResult{Schema: db.Schema, Applied: done, Version: migrations.Latest(), Needs: migrations.Latest()}
	if err != nil {
		result.Version = done[len(done)-1].Version
		err = cli.Fail(cli.Partial, err)
	}
	return errors.Join(p.printSteps(result, "applied", done), err)
}

func (p *program) migrateDown(ctx context.Context, db *backends.Postgres, n int, yes bool) error {
	applied, err := migrations.Status(ctx, db.Pool, db.Schema)
	if err != nil {
		return err
	}
	if err := migrations.Check(ctx, db.Pool, db.Schema); err != nil && !errors.Is(err, migrations.ErrOlder) {
		return err
	}
	n = min(n, len(applied))
	if n == 0 {
		return p.printSteps(migrateResult{Schema: db.Schema, Needs: migrations.Latest()}, "took back", nil)
	}
	if err := cli.Confirm(ctx, p.IO, yes, downQuestion(db, len(applied), n), "migrate status"); err != nil {
		return err
	}
	undone, err := migrations.Down(ctx, db.Pool, db.Schema, n)
	if err != nil && len(undone) == 0 {
		return err
	}
	if err != nil {
		err = cli.Fail(cli.Partial, err)
	}
	result := migrateResult{Schema: db.Schema, Undone: undone, Version: len(applied) - len(undone), Needs: migrations.Latest()}
	return errors.Join(p.printSteps(result, "took back", undone), err)
}

// downQuestion says what is lost.
func downQuestion(db *backends.Postgres, version, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Schema %q of %s. Lost for good:\n", db.Schema, db.At)
	steps := migrations.Steps()
	for i := range n {
		s := steps[version-1-i]
		fmt.Fprintf(&b, "  step %d (%s): %s\n", s.Version, s.Name, s.Loses)
	}
	fmt.Fprintf(&b, "Take back %s?", cli.Count(n, "step"))
	return b.String()
}

func (p *program) printSteps(r migrateResult, verb string, steps []migrations.Step) error {
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, r)
	}
	for _, s := range steps {
		fmt.Fprintf(p.IO.Out, "%s step %d (%s)\n", verb, s.Version, s.Name)
	}
	if len(steps) == 0 {
		fmt.Fprintln(p.IO.Out, "nothing to do")
	}
	_, err := fmt.Fprintf(p.IO.Out, "schema %s has version %d of %d\n", r.Schema, r.Version, r.Needs)
	return err
}

// migrateState is the JSON form of status.
type migrateState struct {
	Schema string `json:"schema"`
	At     string `json:"at"`
	// State is current, older, newer or foreign.
	State   string               `json:"state"`
	Version int                  `json:"version"`
	Needs   int                  `json:"needs"`
	Applied []migrations.Applied `json:"applied"`
	Pending []migrations.Step    `json:"pending"`
}

func (p *program) migrateStatus(ctx context.Context, db *backends.Postgres) error {
	applied, err := migrations.Status(ctx, db.Pool, db.Schema)
	if err != nil {
		return err
	}
	verdict := migrations.Check(ctx, db.Pool, db.Schema)
	if verdict != nil && !migrations.Refuses(verdict) {
		return verdict
	}
	steps := migrations.Steps()
	s := migrateState{
		Schema: db.Schema, At: db.At, State: stateOf(verdict), Version: len(applied), Needs: len(steps),
		Applied: append([]migrations.Applied{}, applied...), Pending: steps[min(len(applied), len(steps)):],
	}
	if p.Settings.JSON {
		return errors.Join(cli.JSON(p.IO.Out, s), silent(verdict))
	}
	var rows [][]string
	for _, a := range s.Applied {
		rows = append(rows, []string{strconv.Itoa(a.Version), a.Name, cli.Time(a.At)})
	}
	for _, step := range s.Pending {
		rows = append(rows, []string{strconv.Itoa(step.Version), step.Name, "not applied"})
	}
	return errors.Join(cli.Table(p.IO.Out, []string{"STEP", "NAME", "APPLIED"}, rows), verdict)
}

// silent ends the program with the code of a verdict that the output has told.
func silent(verdict error) error {
	if verdict == nil {
		return nil
	}
	return cli.Fail(cli.Tables, nil)
}

func stateOf(verdict error) string {
	for state, err := range map[string]error{"older": migrations.ErrOlder, "newer": migrations.ErrNewer, "foreign": migrations.ErrForeign} {
		if errors.Is(verdict, err) {
			return state
		}
	}
	return "current"
}
