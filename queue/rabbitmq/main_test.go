package rabbitmq

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets more tests run side by side than there are processors: they wait for the broker most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if !given("test.parallel") {
		_ = flag.Set("test.parallel", "8") // it exists
	}
	goleak.VerifyTestMain(m)
}

// given reports whether a flag stands on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
