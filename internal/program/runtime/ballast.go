package runtime

import (
	"os"
	"runtime"
)

// ballastSize is what the worker's heap weighs at least in the eyes of the collector. A worker keeps next to nothing from one job to the
// next, so that without it the collector would run for every few megabytes, and take a third of the CPU (docs/benchmarks.md).
const ballastSize = 32 << 20

// addBallast returns a function that drops the ballast again. It is never written, so it costs addresses and no memory. Whoever has tuned
// the collector has the last word.
func addBallast() func() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	ballast := make([]byte, ballastSize)
	return func() { runtime.KeepAlive(ballast) }
}
