package dlqcmd

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/program/backends"
	"github.com/caisson-go/caisson/internal/program/cli"
)

func (t *tool) groupsCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Count entries that died of the same thing, largest group first",
		Long: `Counts entries by kind, destination, cause and the fingerprint of their error, largest group first. Errors that differ only in numbers,
ids and addresses have one fingerprint: pass it to --fingerprint of the other commands.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			return t.groups(cmd, filter)
		},
	}
	f.register(cmd)
	return cmd
}

// groupList is the JSON form of the groups.
type groupList struct {
	Groups []dlq.Group `json:"groups"`
	// Sample is there where only some could be looked at.
	Sample *sample `json:"sample,omitempty"`
}

func (t *tool) groups(cmd *cobra.Command, f dlq.Filter) (err error) {
	s, err := t.open(cmd, backends.Existing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	list, err := s.letters.groups(cmd.Context(), f)
	if err != nil {
		return err
	}
	if t.Settings.JSON {
		return cli.JSON(t.IO.Out, list)
	}
	groups := list.Groups
	rows := make([][]string, len(groups))
	for i, g := range groups {
		rows[i] = []string{
			strconv.Itoa(g.Count), g.Kind, cli.OrDash(g.Destination), string(g.Cause), g.Fingerprint, cli.Time(g.FirstAt), cli.Time(g.LastAt),
			cli.Cut(headline(g.Sample), 60),
		}
	}
	err = cli.Table(t.IO.Out, []string{"COUNT", "KIND", "DESTINATION", "CAUSE", "FINGERPRINT", "FIRST", "LAST", "SAMPLE"}, rows)
	t.noteSample(list.Sample)
	return err
}
