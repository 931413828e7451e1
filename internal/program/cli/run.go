package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-go/caisson/internal/program/config"
)

// Run runs the command that args names, without the program's own name, and returns the exit code. It prints the error.
func Run(ctx context.Context, root *cobra.Command, args []string, streams IO) Code {
	prepare(root)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return OK
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil && codeOf(err) == Failure {
		err = Fail(Interrupted, err)
	}
	report(streams, cmd, asksForJSON(args), err)
	return codeOf(err)
}

// asksForJSON looks at arguments that may not have been parsed as far as --json.
func asksForJSON(args []string) bool {
	asked := false
	for _, arg := range args {
		switch value, given := strings.CutPrefix(arg, "--json="); {
		case arg == "--":
			return asked
		case arg == "--json":
			asked = true
		case given:
			asked, _ = strconv.ParseBool(value)
		}
	}
	return asked
}

// prepare makes all mistakes on the command line ours to report.
func prepare(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		hint := ""
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			hint = unknownFlag(cmd, unknown.GetSpecifiedName())
		}
		return Refuse("%w%s (see %s --help)", readable(err), hint, cmd.CommandPath())
	})
}

// readable says what a flag takes where Go's own words would be shown.
func readable(err error) error {
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &value) || !errors.As(err, &number) {
		return err
	}
	takes := "a number"
	switch flag := value.GetFlag(); {
	case errors.Is(number, strconv.ErrRange):
		takes = "a smaller number"
	case flag.Value.Type() == "bool":
		takes = "true or false"
	case strings.HasPrefix(flag.Value.Type(), "int"):
		takes = "a whole number"
	}
	return fmt.Errorf("--%s %q: give %s", value.GetFlag().Name, value.GetValue(), takes)
}

// report prints err as the command prints. asJSON comes from the arguments as they are: parsing may have failed before it came to --json.
func report(streams IO, cmd *cobra.Command, asJSON bool, err error) {
	var e *Error
	if errors.As(err, &e) && e.Err == nil {
		return
	}
	if !asJSON {
		fmt.Fprintf(streams.Err, "%s: %s\n", cmd.Root().Name(), escape(err.Error(), true))
		return
	}
	failure := struct {
		Error    string           `json:"error"`
		ExitCode Code             `json:"exit_code"`
		Problems []config.Problem `json:"problems,omitempty"`
	}{Error: err.Error(), ExitCode: codeOf(err)}
	var refused *config.Error
	if errors.As(err, &refused) {
		failure.Problems = refused.Problems
	}
	if err := JSON(streams.Err, failure); err != nil {
		fmt.Fprintln(streams.Err, err)
	}
}

// Group makes cmd one that only holds others: without one of them it prints its help and refuses, and so it does with an unknown one.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(below...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
			return Refuse("a command is missing")
		}
		hint := ""
		if now := config.Renamed(nameOf(cmd) + args[0]); now != "" {
			hint = ": it is called " + now + " now"
		} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = ": did you mean " + strings.Join(near, " or ") + "?"
		}
		return Refuse("unknown command %q for %q%s (see %s --help)", args[0], cmd.CommandPath(), hint, cmd.CommandPath())
	}
	return cmd
}

// Args has a mistake in the number of arguments refused like the others.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Refuse("%w (usage: %s)", err, cmd.UseLine())
		}
		return nil
	}
}

// Main runs a program under signals and ends the process with its exit code. The first SIGINT or SIGTERM ends run's context; a second
// one exits at once, unless it comes within half a second: wrappers pass on a signal that the terminal has sent to the whole group.
func Main(run func(ctx context.Context) Code) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		obey(signals, stop)
		os.Exit(int(Interrupted))
	}()
	os.Exit(int(run(ctx)))
}

// together is how far apart two signals may be and still mean one.
const together = 500 * time.Millisecond

// obey calls stop at the first signal and returns at the second.
func obey(signals <-chan os.Signal, stop func()) {
	<-signals
	stop()
	for first := time.Now(); time.Since(first) < together; {
		<-signals
	}
}
