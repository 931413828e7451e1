package explain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/webhook"
)

// Command returns the command explain.
func Command(p *cli.Program) *cobra.Command { return (&program{p}).explainCommand() }

type program struct{ *cli.Program }

func (p *program) explainCommand() *cobra.Command {
	var kind, tenant string
	cmd := &cobra.Command{
		Use:   "explain ID | KEY | EVENT",
		Short: "Say why a job is where it is: waiting, running, held, dead or done",
		Long: `Says why a job is where it is, in one sentence, and then what is known of it: its messages in the queue and how many are ahead of them, its
claim, every attempt, the next try, the breaker and pool that it depends on as all live workers see them, the endpoint of a webhook delivery, its
dead letters and replays.

The job is named by its id, its idempotency key, or the id of a dead letter. Several jobs that match are listed, with a sentence each; name one
by its id, or choose with --kind. Nothing is changed, and nothing is taken from a queue.

If there is no such job, the text is taken for the id of a webhook event, and its deliveries are listed.

RabbitMQ and SQS cannot be asked about one message: there the rest says why. A kind without idempotency leaves no trace but its message
and its dead letter. Exits 1 if nothing is known of the job.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return p.explain(cmd, args[0], kind, tenant) },
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only jobs of this `kind`")
	cmd.Flags().StringVar(&tenant, "tenant", webhook.DefaultTenant, "`tenant` of a webhook event")
	return cmd
}

func (p *program) explain(cmd *cobra.Command, text, kind, tenant string) (err error) {
	if text == "" {
		return cli.Refuse("name a job by its id or key")
	}
	cfg, s, err := backends.OpenFor(cmd, p.Program, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d, err := gather(cmd.Context(), s, p.Name, cfg.Broker, text)
	if err != nil {
		return err
	}
	if len(d.ids()) == 0 && (kind == "" || kind == webhook.KindDeliver) {
		if d, err = d.ofEvent(cmd.Context(), cfg, s, text, tenant); err != nil {
			return err
		}
	}
	if err := d.findEndpoints(cmd.Context(), cfg, s); err != nil {
		return err
	}
	e := d.explain(text, kind)
	if len(e.Jobs) == 0 && e.Event == nil {
		return unknown(d, text, kind)
	}
	if p.Settings.JSON {
		return cli.JSON(p.IO.Out, e)
	}
	return e.print(p.IO.Out)
}

// unknown says what was looked at in vain.
func unknown(d *diagnosis, text, kind string) error {
	of := ""
	if kind != "" {
		of = fmt.Sprintf(" of kind %q", kind)
	}
	err := fmt.Errorf("nothing is known of a job%s with the id or key %q: it never was, or its records are older than their retention", of, text)
	for _, n := range d.notes {
		err = fmt.Errorf("%w; %s", err, n)
	}
	return err
}

// explanation is the JSON form of explain.
type explanation struct {
	Query string `json:"query"`
	// Workers is how many are live; null where they share no store to tell of themselves.
	Workers *int `json:"workers"`
	// Event is what the query names if that is no job; Jobs are its deliveries then.
	Event *eventView `json:"event,omitempty"`
	Jobs  []jobView  `json:"jobs"`
	// Notes say what could not be looked at.
	Notes []string `json:"notes,omitempty"`
}

// explain judges the jobs that match.
func (d *diagnosis) explain(text, kind string) explanation {
	e := explanation{Query: text, Event: d.event, Jobs: []jobView{}, Notes: d.notes}
	if d.hasStatuses {
		n := len(d.reports)
		e.Workers = &n
	}
	for _, s := range d.matching() {
		if kind != "" && s.kind != "" && s.kind != kind {
			continue
		}
		e.Jobs = append(e.Jobs, d.view(s))
	}
	e.Jobs = append(e.Jobs, d.unseen()...)
	slices.SortStableFunc(e.Jobs, func(a, b jobView) int { return b.rank() - a.rank() })
	return e
}
