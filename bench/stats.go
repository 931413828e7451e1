package main

import (
	"fmt"
	"slices"
)

// median returns the median, minimum and maximum of values.
func median(values []float64) (mid, low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]
}

func row(name string, values []float64, unit, note string) {
	mid, low, high := median(values)
	line(name, mid, low, high, unit, note)
}

// ratioRow prints the ratio of the medians of a and b, with the range of the ratios round by round.
func ratioRow(name string, a, b []float64, note string) {
	top, _, _ := median(a)
	bottom, _, _ := median(b)
	byRound := make([]float64, len(a))
	for i := range a {
		byRound[i] = a[i] / b[i]
	}
	_, low, high := median(byRound)
	line(name, top/bottom, low, high, "", note)
}

func line(name string, mid, low, high float64, unit, note string) {
	format := "  %-52s %10.1f %-7s (%.1f to %.1f) %s\n"
	if mid < 10 {
		format = "  %-52s %10.2f %-7s (%.2f to %.2f) %s\n"
	}
	fmt.Printf(format, name, mid, unit, low, high, note)
}

func each[T any](rounds []T, value func(T) float64) []float64 {
	list := make([]float64, len(rounds))
	for i, r := range rounds {
		list[i] = value(r)
	}
	return list
}

// ratios compares round by round, so that a machine whose mood changes hits both sides.
func ratios[T any](a, b []T, value func(T) float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = value(a[i]) / value(b[i])
	}
	return list
}
