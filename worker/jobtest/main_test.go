package jobtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spy is a testing.TB whose failures are recorded instead of failing the test.
type spy struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (s *spy) Helper() {}

func (s *spy) Fatal(args ...any) {
	s.Error(args...)
	runtime.Goexit()
}

func (s *spy) Fatalf(format string, args ...any) { s.Fatal(fmt.Sprintf(format, args...)) }

func (s *spy) Error(args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprint(args...))
}

func (s *spy) Errorf(format string, args ...any) { s.Error(fmt.Sprintf(format, args...)) }

// failure runs do, which must fail its test, and returns what it said.
func failure(t *testing.T, do func(testing.TB)) string {
	t.Helper()
	s := &spy{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(s)
	}()
	<-done
	if len(s.failures) == 0 {
		t.Fatal("it did not fail")
	}
	return strings.Join(s.failures, "\n")
}

// bubble runs do in a bubble of its own.
func bubble(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, do) })
}
