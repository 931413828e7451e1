package faultlab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	envDir      = "CAISSON_TEST_LAB_DIR"
	envBroker   = "CAISSON_TEST_LAB_BROKER"
	envWhere    = "CAISSON_TEST_LAB_WHERE"
	envQueue    = "CAISSON_TEST_LAB_QUEUE"
	envMutation = "CAISSON_TEST_LAB_MUTATION"
	envLease    = "CAISSON_TEST_LAB_LEASE"
	envSlots    = "CAISSON_TEST_LAB_CONCURRENCY"
)

// Main makes this process a worker, and does not return, if [KillRound] started it as one. Call it first in TestMain, with all brokers
// that tests of the package name.
func Main(openers map[string]Opener) {
	dir := os.Getenv(envDir)
	if dir == "" {
		return
	}
	open, ok := openers[os.Getenv(envBroker)]
	err := fmt.Errorf("no opener for broker %q", os.Getenv(envBroker))
	if ok {
		err = work(dir, open)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work is what a child does.
func work(dir string, open Opener) error {
	ctx, stop := ChildContext()
	defer stop()
	stack, err := open(ctx, dir, os.Getenv(envWhere))
	if err != nil && ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	defer func() { _ = stack.Close() }()
	book, err := OpenBook(dir)
	if err != nil {
		return err
	}
	defer func() { _ = book.Close() }()
	lease, err := time.ParseDuration(os.Getenv(envLease))
	slots, slotsErr := strconv.Atoi(os.Getenv(envSlots))
	if err := errors.Join(err, slotsErr); err != nil {
		return err
	}
	w, err := workerSetup{
		stack: stack, queue: os.Getenv(envQueue), book: book, lease: lease, concurrency: slots, mutation: os.Getenv(envMutation), log: os.Stderr,
	}.worker()
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// startChild starts a worker process with its orders in the environment.
func startChild(t testing.TB, plan KillPlan, dir string) *Child {
	t.Helper()
	return StartChild(t, dir,
		envDir+"="+dir, envBroker+"="+plan.Broker, envWhere+"="+plan.Where, envQueue+"="+plan.Queue, envMutation+"="+plan.Mutation,
		envLease+"="+plan.lease().String(), envSlots+"="+strconv.Itoa(cmp.Or(plan.Concurrency, 20)))
}

// awaitWork waits until the process is in the middle of a handler, but not for longer than until.
func awaitWork(c *Child, dir string, until time.Time) {
	for time.Now().Before(until) {
		book, err := os.ReadFile(bookName(dir, c.PID()))
		if err == nil && bytes.Count(book, []byte("\n")) > 2*bytes.Count(book, []byte(`"end":`)) {
			return
		}
		time.Sleep(5 * time.Millisecond) // between looks at another process's book
	}
}
