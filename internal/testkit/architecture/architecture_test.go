package architecture

import "testing"

// TestArchitecture holds the repository against the rules of this package. The tests beside it show that the rules bite.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(*testing.T){
		"floors": floorsHold, "file sizes": filesAreSmall, "package comments": packagesSayWhatTheyPromise, "top level": topLevelIsKnown,
		"retired words": wordsAreOurs, "surface": surfaceIsSmall, "width of pages": pagesAreNarrow, "links of pages": linksLead, "mentions in pages": mentionsExist, "length of README": readmeIsShort,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule(t)
		})
	}
}
