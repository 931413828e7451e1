package main

import "fmt"

// aims are notes beside the ratios of a side.
type aims struct{ publish, cycle, cpu string }

func rates(laps []lap) []float64   { return each(laps, func(l lap) float64 { return l.rate }) }
func clients(laps []lap) []float64 { return each(laps, func(l lap) float64 { return l.client }) }
func servers(laps []lap) []float64 { return each(laps, func(l lap) float64 { return l.server }) }

// phase is one thing that all sides do.
type phase struct {
	name string
	laps func(*side) []lap
}

var phases = []phase{
	{"publish, one caller", func(s *side) []lap { return s.alone }},
	{fmt.Sprintf("publish, %d callers", callers), func(s *side) []lap { return s.together }},
	{"receive to ack", func(s *side) []lap { return s.worked }},
}

// print writes medians, and the ratios of all other sides to the first.
func (t *contest) print(notes map[string]aims) {
	for _, p := range phases {
		fmt.Printf(" %s:\n", p.name)
		for _, s := range t.sides {
			row(s.name, rates(p.laps(s)), "jobs/s", "")
		}
		for _, s := range t.sides {
			row(s.name+", client CPU per job", clients(p.laps(s)), "us", "")
		}
		for _, s := range t.sides {
			if list := servers(p.laps(s)); list[0] > 0 {
				row(s.name+", broker CPU per job", list, "us", "")
			}
		}
	}
	bare := t.sides[0]
	fmt.Printf(" ratios of the medians to %q (and the range of the ratios, round by round):\n", bare.name)
	for _, s := range t.sides[1:] {
		note := notes[s.name]
		for _, p := range phases[:2] {
			ratioRow(s.name+", "+p.name, rates(p.laps(s)), rates(p.laps(bare)), note.publish)
		}
		ratioRow(s.name+", receive to ack", rates(s.worked), rates(bare.worked), "")
		ratioRow(s.name+", full cycle", s.cycle(), bare.cycle(), note.cycle)
		ratioRow(s.name+", client CPU of a full cycle", s.cycleCPU(false), bare.cycleCPU(false), note.cpu)
		if t.server.known() {
			ratioRow(s.name+", CPU of client and broker", s.cycleCPU(true), bare.cycleCPU(true), "")
		}
	}
	fmt.Println()
}
