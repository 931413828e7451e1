package config

import "strings"

// listed is how many candidates a hint may list: more would bury the error.
const listed = 24

// didYouMean returns a hint at the nearest of candidates, or, if none is near, at all of them.
func didYouMean(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	if len(candidates) > listed {
		return "docs/configuration.md lists all, config print those in effect"
	}
	return "known here: " + strings.Join(candidates, ", ")
}

// nearest returns the candidate with the fewest edits to word, if they are few for its length.
func nearest(word string, candidates []string) string {
	best, least := "", max(2, len(word)/4)+1
	for _, c := range candidates {
		if d := edits(word, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes. Words are cut to 100 bytes: keys are short, and what a user typed may not be.
func edits(a, b string) int {
	a, b = a[:min(len(a), 100)], b[:min(len(b), 100)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
