package cli

import (
	"runtime"
	"runtime/debug"
)

// Build is what the binary knows of its making. It is the JSON form of version.
type Build struct {
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

// BuildOf returns the build of this binary.
func BuildOf() Build {
	b := Build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
