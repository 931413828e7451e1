package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/internal/cli"
)

// confirm asks before something is changed. yes answers in advance; where nobody can be asked it is required.
func (t *tool) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !t.io.CanAsk() {
		return cli.Refuse("%s Nobody can be asked here: add --yes, or look first with --dry-run", question)
	}
	fmt.Fprintf(t.io.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read from a terminal cannot be interrupted; after the interrupt the process ends
		line, _ := bufio.NewReader(t.io.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return cli.Fail(cli.Failure, fmt.Errorf("not confirmed: nothing was changed"))
	case <-ctx.Done():
		fmt.Fprintln(t.io.Err)
		return cli.Fail(cli.Interrupted, fmt.Errorf("interrupted: nothing was changed"))
	}
}
