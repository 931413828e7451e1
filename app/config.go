package app

import (
	"context"
	"log/slog"
	"os"

	"github.com/caisson-go/caisson/internal/program/config"
)

// Config says where a program that runs no worker finds the workers' configuration. The zero value is right where the workers' variables are set.
type Config struct {
	// File is the workers' configuration file. Empty means that of CAISSON_CONFIG, or none.
	File string
	// Env holds CAISSON_* variables in the form of os.Environ. Nil means those of the process.
	Env []string
	// Set are configuration values by key, such as "embedded.path". They are stronger than file and variables.
	Set map[string]string
	// Logger gets what an operator should know. Nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// load reads the configuration, and logs its warnings.
func (c Config) load(ctx context.Context) (*config.Config, error) {
	cfg, warnings, err := config.Load(config.Sources{File: config.FileOf(c.File, c.Env), Env: c.Env, Flags: c.Set})
	for _, w := range warnings {
		c.Logger.WarnContext(ctx, "configuration", "warning", w.String())
	}
	return cfg, err
}
