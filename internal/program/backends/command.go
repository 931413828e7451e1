package backends

import (
	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
)

// OpenFor reads the configuration of a command, and opens what it names as [OpenSoon] does.
func OpenFor(cmd *cobra.Command, p *cli.Program, mode Mode) (*config.Config, *Set, error) {
	cfg, err := p.Load(cmd)
	if err != nil {
		return nil, nil, err
	}
	s, err := OpenSoon(cmd.Context(), cfg, mode)
	return cfg, s, err
}
