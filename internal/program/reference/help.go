package reference

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-go/caisson/app"
	"github.com/caisson-go/caisson/worker"
)

// program is the name under which the pages show the commands.
const program = "worker"

// command is what --help tells of one.
type command struct {
	path         []string // below the program
	usage, short string
	flags        []flag
	children     []command
}

type flag struct{ name, value, meaning string }

var (
	childLine = regexp.MustCompile(`^  (\S+) +(.+)$`)
	flagLine  = regexp.MustCompile(`^ +(?:-\w, )?--(\S+)(?: (\S.*?))?   +(.+)$`)
)

// help asks the program for its help on a command and on all below it.
func help(path ...string) (command, error) {
	var out, problems bytes.Buffer
	args := append(append([]string{program}, path...), "--help")
	code := app.Run(context.Background(), args, app.IO{Out: &out, Err: &problems}, func(*worker.Registry) error { return nil })
	if code != 0 {
		return command{}, fmt.Errorf("%s: exit code %d: %s", strings.Join(args, " "), code, &problems)
	}
	c := command{path: path}
	part := ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || !strings.HasPrefix(line, " "):
			part = line
		case part == "Usage:" && c.usage == "":
			c.usage = strings.TrimSuffix(strings.TrimSpace(line), " [flags]")
		case part == "Available Commands:":
			m := childLine.FindStringSubmatch(line)
			if m == nil || m[1] == "help" || m[1] == "completion" {
				continue
			}
			child, err := help(append(append([]string{}, path...), m[1])...)
			if err != nil {
				return c, err
			}
			child.short = m[2]
			c.children = append(c.children, child)
		case part == "Flags:":
			if m := flagLine.FindStringSubmatch(line); m != nil && m[1] != "help" {
				c.flags = append(c.flags, flag{m[1], m[2], m[3]})
			}
		}
	}
	return c, nil
}
