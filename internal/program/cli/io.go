package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IO is a program's surroundings.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	// Env holds variables in the form of os.Environ.
	Env []string
}

// System returns those of the process.
func System() IO { return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()} }

// CanAsk reports whether a person can be asked: questions go to standard error and answers come from standard input.
func (s IO) CanAsk() bool { return terminal(s.In) && terminal(s.Err) }

// Watched reports whether standard error is a terminal.
func (s IO) Watched() bool { return terminal(s.Err) }

// OutWatched reports whether standard output is a terminal.
func (s IO) OutWatched() bool { return terminal(s.Out) }

func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits an int
}
