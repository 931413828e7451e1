package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/config"
)

// Program is what the commands of one program share.
type Program struct {
	// Name is what the program is called by, in help and errors.
	Name     string
	IO       IO
	Settings Settings
}

// Load reads the configuration for cmd and prints its warnings. Every error is one of [Usage].
func (p *Program) Load(cmd *cobra.Command) (*config.Config, error) { return p.Settings.Load(cmd, p.IO) }

// Text puts the program's name in place of PROGRAM.
func (p *Program) Text(text string) string { return strings.ReplaceAll(text, "PROGRAM", p.Name) }
