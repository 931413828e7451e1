package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "chaos makes a webhook endpoint sick in each of the usual ways and measures, in a minute and a half, what the worker makes of it. It takes no arguments.")
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "chaos: takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runAll(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// runAll runs both parts.
func runAll(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "## Sick endpoints\n\nTimes are those of the run; the defaults' are %d times as long.\n\n", compression)
	if _, err := printSick(ctx, out); err != nil {
		return err
	}
	for _, e := range []struct {
		title string
		print func(context.Context, io.Writer) ([]*observed, error)
	}{
		{"Correlated failures", printOutage},
		{"A stall", printStall},
		{"429 is not a failure", printThrottle},
		{"Jitter", printJitter},
		{"Retry budget", printBudget},
	} {
		fmt.Fprintf(out, "\n## %s\n\n", e.title)
		if _, err := e.print(ctx, out); err != nil {
			return fmt.Errorf("%s: %w", e.title, err)
		}
	}
	return nil
}
