package runcmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/runtime"
)

func (p *program) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check",
		Short: "Check configuration and registered kinds; exit 2 if run would refuse them",
		Long: `Checks the configuration and the registered kinds as run does at its start, without touching a file or a broker. Exits 2 and names
every fault with its key and the way out.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.Load(cmd)
			if err != nil {
				return err
			}
			if err := runtime.Check(cmd.Context(), p.runtime(cfg)); err != nil {
				return err
			}
			if p.Settings.JSON {
				return cli.JSON(p.IO.Out, map[string]bool{"ok": true})
			}
			fmt.Fprintln(p.IO.Out, "configuration is fine")
			return nil
		},
	}
	show := &cobra.Command{
		Use:   "print",
		Short: "Print the effective configuration and where each value comes from",
		Long: `Prints the effective configuration as YAML, with where each value comes from beside it: default, file and line, variable or flag.
Secrets are masked.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.Load(cmd)
			if err != nil {
				return err
			}
			if p.Settings.JSON {
				return cli.JSON(p.IO.Out, map[string][]config.Setting{"settings": cfg.Settings()})
			}
			return cfg.Print(p.IO.Out)
		},
	}
	return cli.Group(&cobra.Command{Use: "config", Short: "Check or print the configuration"}, check, show)
}
