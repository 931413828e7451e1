package truncate

import (
	"strings"
	"unicode/utf8"
)

// Text cuts text to at most limit bytes on a rune boundary and marks the cut. Invalid UTF-8 is replaced.
func Text(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const mark = "… (cut)"
	cut := max(0, limit-len(mark))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}
