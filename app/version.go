package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// build is what the binary knows of its making. It is the JSON form of version.
type build struct {
	// Program and Version are the main module's; Caisson is the version of this module where another one is built on it.
	Program  string `json:"program"`
	Version  string `json:"version"`
	Caisson  string `json:"caisson,omitempty"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

const modulePath = "github.com/caisson-go/caisson"

func buildInfo() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Program = info.Main.Path
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			b.Caisson = m.Version
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := buildInfo()
			if p.settings.JSON {
				return cli.JSON(p.io.Out, b)
			}
			fmt.Fprintf(p.io.Out, "%s %s (%s, %s)\n", p.name, b.Version, b.Go, b.Platform)
			for _, line := range [][2]string{{"caisson", b.Caisson}, {"revision", b.Revision}, {"time", b.Time}} {
				if line[1] != "" {
					fmt.Fprintf(p.io.Out, "  %s %s\n", line[0], line[1])
				}
			}
			if b.Modified {
				fmt.Fprintln(p.io.Out, "  built from files that were not committed")
			}
			return nil
		},
	}
}
