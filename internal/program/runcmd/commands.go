package runcmd

import (
	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/internal/program/runtime"
	"github.com/caisson-go/caisson/worker"
)

// Commands returns run, relay, config and version. setup registers the program's kinds.
func Commands(p *cli.Program, setup func(*worker.Registry) error) []*cobra.Command {
	own := &program{p, setup}
	return []*cobra.Command{own.runCommand(), own.relayCommand(), own.configCommand(), own.versionCommand()}
}

// program is what the commands share.
type program struct {
	*cli.Program
	setup func(*worker.Registry) error
}

// runtime is what a runtime is made of.
func (p *program) runtime(cfg *config.Config) runtime.Config {
	return runtime.Config{Settings: cfg, Setup: p.setup, Logger: cli.Logger(cfg, p.IO)}
}
