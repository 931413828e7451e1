package faultlab

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// KillAt runs this test binary again with env beside the variables of this process, and kills it once it has printed a line with a number of n
// or more. It fails if the child ends before.
func KillAt(t testing.TB, n int, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if done, err := strconv.Atoi(lines.Text()); err == nil && done >= n {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child was not killed: %v", err)
	}
}
