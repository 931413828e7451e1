package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Confirm asks before something is changed. yes answers in advance; where nobody can be asked it is required. look is how to
// look first, for whoever cannot be asked.
func Confirm(ctx context.Context, streams IO, yes bool, question, look string) error {
	if yes {
		return nil
	}
	if !streams.CanAsk() {
		return Refuse("%s Nobody can be asked here: add --yes, or look first with %s", question, look)
	}
	fmt.Fprintf(streams.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read from a terminal cannot be interrupted; after the interrupt the process ends
		line, _ := bufio.NewReader(streams.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return Fail(Failure, errors.New("not confirmed: nothing was changed"))
	case <-ctx.Done():
		fmt.Fprintln(streams.Err)
		return Fail(Interrupted, errors.New("interrupted: nothing was changed"))
	}
}
