package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caisson-go/caisson/internal/truncate"
)

func TestText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		limit int
	}{
		"short":           {"boom", 10},
		"300 KB of runes": {strings.Repeat("ä€𝄞", 100_000), 4 << 10},
		"invalid bytes":   {strings.Repeat("\xff\x00a", 5_000), 4 << 10},
		"tiny limit":      {strings.Repeat("€", 100), 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := truncate.Text(tc.text, tc.limit)
			if len(got) > tc.limit || !utf8.ValidString(got) {
				t.Errorf("cut to %d bytes (limit %d), valid %v", len(got), tc.limit, utf8.ValidString(got))
			}
			kept := strings.TrimSuffix(got, "… (cut)")
			if !strings.HasPrefix(strings.ToValidUTF8(tc.text, "\uFFFD"), kept) {
				t.Errorf("%q is not the beginning of the text", kept)
			}
			if len(tc.text) > tc.limit && len(got) < tc.limit-utf8.UTFMax {
				t.Errorf("cut to %d bytes where %d fit", len(got), tc.limit)
			}
		})
	}
}
