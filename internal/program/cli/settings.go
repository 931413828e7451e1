package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-go/caisson/internal/program/config"
)

// Settings are the flags that reach the configuration, and --json. Register them on the root command; Bind more on others.
type Settings struct {
	// JSON is the flag --json.
	JSON bool

	file  string
	set   []string
	bound map[string]string // configuration key by flag
}

// Register adds the flags that every command has.
func (s *Settings) Register(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&s.file, "config", "", "configuration `file` (YAML); or set "+config.FileVariable)
	flags.StringArrayVar(&s.set, "set", nil, "set any configuration `key=value`, for example --set lease=1m; may be given several times")
	flags.BoolVar(&s.JSON, "json", false, "print JSON")
	s.Bind(flags, "db", "embedded.path", "`file` of the embedded queue")
	s.Bind(flags, "log-level", "log.level", "least `level` that is logged: debug, info, warn or error")
}

// Bind adds a flag that sets a configuration key.
func (s *Settings) Bind(flags *pflag.FlagSet, flag, key, usage string) {
	if s.bound == nil {
		s.bound = map[string]string{}
	}
	s.bound[flag] = key
	flags.String(flag, "", usage+"; sets "+key)
}

// Load reads the configuration for cmd and prints its warnings. Every error is one of [Usage].
func (s *Settings) Load(cmd *cobra.Command, streams IO) (*config.Config, error) {
	flags, err := s.flags(cmd)
	if err != nil {
		return nil, err
	}
	cfg, warnings, err := config.Load(config.Sources{File: config.FileOf(s.file, streams.Env), Env: streams.Env, Flags: flags})
	for _, w := range warnings {
		fmt.Fprintf(streams.Err, "warning: %s\n", Lines(w.String()))
	}
	if err != nil {
		return nil, Fail(Usage, err)
	}
	return cfg, nil
}

// flags returns the configuration keys that flags set.
func (s *Settings) flags(cmd *cobra.Command) (map[string]string, error) {
	values := map[string]string{}
	var errs []error
	for _, pair := range s.set {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			errs = append(errs, errors.New("--set: write key=value")) // without what was written, which may be a secret
			continue
		}
		if _, twice := values[key]; twice {
			errs = append(errs, fmt.Errorf("--set %s: give each key once", key))
			continue
		}
		values[key] = value
	}
	for flag, key := range s.bound {
		f := cmd.Flag(flag)
		if f == nil || !f.Changed {
			continue
		}
		if _, twice := values[key]; twice {
			errs = append(errs, fmt.Errorf("--%s and --set %s both set %s: keep one", flag, key, key))
			continue
		}
		values[key] = f.Value.String()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, Fail(Usage, err)
	}
	return values, nil
}

// Logger returns the logger that the configuration asks for. It writes to standard error.
func Logger(cfg *config.Config, streams IO) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		level = slog.LevelInfo // config refuses unknown levels
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(streams.Err, options))
	}
	return slog.New(slog.NewTextHandler(streams.Err, options))
}
