package truncate

import (
	"strings"
	"unicode/utf8"
)

const mark = "… (cut)"

// Text cuts text to at most limit bytes on a rune boundary and marks the cut. Invalid UTF-8 is replaced.
func Text(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return Cut(text, max(0, limit-len(mark))) + mark
}

// Cut returns text as valid UTF-8 of at most limit bytes, cut between two runes.
func Cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
