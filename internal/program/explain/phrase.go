package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/internal/program/cli"
)

func (v *poolView) String() string {
	if v.Workers == 1 {
		return fmt.Sprintf("%d of the %d places of %s are taken", v.InUse, v.Size, v.Name)
	}
	return fmt.Sprintf("the pool %s is full at %d of %s", v.Name, v.Full, count(v.Workers, "worker"))
}

// count says how many, as people do.
func count(n int, noun string) string { return cli.Count(n, noun) }

// span is a duration as people say it: whole seconds, and without zeros at its end.
func span(d time.Duration) string {
	if d < time.Second {
		return "less than 1s"
	}
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// headline is the first line of an error.
func headline(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return cli.Cut(first, 300)
}
