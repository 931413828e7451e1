package endpointcmd

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/caisson-go/caisson/internal/program/cli"
)

// paging is what a command that lists takes of a long list.
type paging struct {
	limit int
	after string
}

func (g *paging) register(flags *pflag.FlagSet) {
	flags.IntVar(&g.limit, "limit", 100, "how `many` to list")
	flags.StringVar(&g.after, "after", "", "`cursor` that the page before ended with")
}

func (g *paging) check() error {
	if g.limit < 1 || g.limit > 1000 {
		return cli.Refuse("--limit %d: use 1 to 1000", g.limit)
	}
	return nil
}

// more says how to get the next page, if there is one.
func (p *program) more(next string) {
	if next != "" {
		fmt.Fprintf(p.IO.Err, "there are more: add --after %s\n", next)
	}
}
