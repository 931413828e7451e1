package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// config is what a run is made of.
type config struct {
	rounds int
	jobs   int
	size   int
	slots  int
}

func main() {
	var c config
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement; medians are printed")
	flag.IntVar(&c.jobs, "jobs", 20000, "jobs per round")
	flag.IntVar(&c.size, "size", 1024, "payload bytes")
	flag.IntVar(&c.slots, "slots", 64, "worker slots, and goroutines of the raw loop")
	only := flag.String("only", "", "run one group only: engine, framework or breaker")
	flag.Parse()
	fmt.Printf("%s %s/%s, %d cores, %d rounds of %d jobs of %d bytes, %d slots\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), c.rounds, c.jobs, c.size, c.slots)
	groups := []struct {
		name string
		run  func(config) error
	}{{"engine", engine}, {"framework", framework}, {"breaker", breakers}}
	for _, g := range groups {
		if *only != "" && *only != g.name {
			continue
		}
		if err := g.run(c); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", g.name, err)
			os.Exit(1)
		}
	}
}

// median returns the median, minimum and maximum of values.
func median(values []float64) (mid, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]
}

func row(name string, values []float64, unit, note string) {
	mid, low, high := median(values)
	format := "  %-44s %10.1f %-10s (%.1f to %.1f) %s\n"
	if mid < 10 {
		format = "  %-44s %10.2f %-10s (%.2f to %.2f) %s\n"
	}
	fmt.Printf(format, name, mid, unit, low, high, note)
}
