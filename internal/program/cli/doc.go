// Package cli is what Caisson's programs share on the command line.
//
// What it guarantees:
//
//   - Exit codes mean the same in every program: see [ExitCodes].
//   - Results go to standard output, everything else (errors, warnings, questions, progress) to standard error.
//   - With --json a result is JSON, one document or one line per item, and so is the error that ends the program.
//   - What came from a job or an endpoint is printed with control characters escaped, so that no error text can drive a terminal.
//   - A mistyped command or flag is refused with the nearest known one, also below the first level.
//
// [Run] runs a command tree without ending the process, so that tests can call it; [Main] adds signals and the exit.
package cli
