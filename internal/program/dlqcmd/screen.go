package dlqcmd

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// The few words that terminals understand.
const (
	cursorHome = "\x1b[H"
	clearAll   = "\x1b[2J"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// redraw draws all groups on a terminal, over what was drawn before.
func (t *tool) redraw(w *watch, groups []queueGroup) error {
	first := !w.begun
	changed := map[[5]string]int{}
	for _, c := range w.changes(groups) {
		changed[c.place()] = c.Change
	}
	width, height := t.size()
	var screen strings.Builder
	screen.WriteString(cursorHome)
	if first {
		screen.WriteString(clearAll)
	}
	for i, line := range picture(w, groups, changed, height) {
		if i > 0 {
			screen.WriteString("\n")
		}
		screen.WriteString(cli.Cut(line, width) + clearLine)
	}
	screen.WriteString("\n" + clearBelow)
	if _, err := fmt.Fprint(t.IO.Out, screen.String()); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}

// picture returns the lines to draw, at most height of them.
func picture(w *watch, groups []queueGroup, changed map[[5]string]int, height int) []string {
	n := total(groups)
	title := fmt.Sprintf("%s   %d entries in %d groups, %+d since %s   ctrl-C ends this", cli.Time(time.Now()), n, len(groups), n-w.atOnce, cli.Time(w.start))
	shown := groups[:min(len(groups), max(1, height-5))]
	rows := make([][]string, len(shown))
	for i, g := range shown {
		change := ""
		if c := changed[g.place()]; c != 0 {
			change = fmt.Sprintf("%+d", c)
		}
		rows[i] = append([]string{strconv.Itoa(g.Count), change}, describeGroup(g)...)
	}
	var table strings.Builder
	if err := cli.Table(&table, []string{"COUNT", "CHANGE", "QUEUE", "KIND", "DESTINATION", "CAUSE", "FINGERPRINT", "SAMPLE"}, rows); err != nil {
		panic(err) // a builder takes everything
	}
	lines := append([]string{title, ""}, strings.Split(strings.TrimRight(table.String(), "\n"), "\n")...)
	if more := len(groups) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more groups", more))
	}
	return lines
}

// size returns the terminal's, or a common one.
func (t *tool) size() (width, height int) {
	if f, ok := t.IO.Out.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 { //nolint:gosec // a descriptor fits an int
			return width, height
		}
	}
	return 120, 40
}
