package eventually

import (
	"errors"
	"testing"
	"time"
)

// limit is how long a test waits before it fails.
const limit = 2 * time.Minute

// True waits until done returns true, and fails the test with what if it does not.
func True(t testing.TB, what string, done func() bool) {
	t.Helper()
	NoError(t, func() error {
		if done() {
			return nil
		}
		return errors.New(what)
	})
}

// NoError waits until check returns nil, and fails the test with its last error if it does not.
func NoError(t testing.TB, check func() error) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		err := check()
		switch {
		case err == nil:
			return
		case time.Now().After(end):
			t.Fatalf("after %v still not true: %v", limit, err)
		}
	}
}
