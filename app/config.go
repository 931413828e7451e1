package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
)

func (p *program) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check",
		Short: "Check configuration and registered kinds; exit 2 if run would refuse them",
		Long: `Checks the configuration and the registered kinds as run does at its start, without touching a file or a broker. Exits 2 and names
every fault with its key and the way out.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.settings.Load(cmd, p.io)
			if err != nil {
				return err
			}
			prepared, err := p.prepare(cfg)
			if err != nil {
				return err
			}
			defer prepared.close()
			if err := prepared.check(cmd.Context()); err != nil {
				return err
			}
			if p.settings.JSON {
				return cli.JSON(p.io.Out, map[string]bool{"ok": true})
			}
			fmt.Fprintln(p.io.Out, "configuration is fine")
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
			cfg, err := p.settings.Load(cmd, p.io)
			if err != nil {
				return err
			}
			if p.settings.JSON {
				return cli.JSON(p.io.Out, map[string][]config.Setting{"settings": cfg.Settings()})
			}
			return cfg.Print(p.io.Out)
		},
	}
	return cli.Group(&cobra.Command{Use: "config", Short: "Check or print the configuration"}, check, show)
}
