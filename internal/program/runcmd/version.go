package runcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := cli.BuildOf()
			if p.Settings.JSON {
				return cli.JSON(p.IO.Out, b)
			}
			fmt.Fprintf(p.IO.Out, "%s %s (%s, %s)\n", p.Name, b.Version, b.Go, b.Platform)
			for _, line := range [][2]string{{"caisson", b.Caisson}, {"revision", b.Revision}, {"time", b.Time}} {
				if line[1] != "" {
					fmt.Fprintf(p.IO.Out, "  %s %s\n", line[0], line[1])
				}
			}
			if b.Modified {
				fmt.Fprintln(p.IO.Out, "  built from files that were not committed")
			}
			return nil
		},
	}
}
