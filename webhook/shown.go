package webhook

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/caisson-go/caisson/internal/truncate"
)

// Shown returns what may be shown of a response of e: the beginning of its body as one line, and why there was none. What either repeats of
// header values and of the URL's path is left out, and so are the addresses at either end and those of name servers.
func (r Response) Shown(e Endpoint) (text, reason string) {
	switch {
	case r.Err == nil:
	case errors.Is(r.Err, ErrBlocked):
		reason = ErrBlocked.Error() // the same for every address, so that nobody can map our network
	default:
		reason = truncate.Text(oneLine(cleaned(r.Err, e).Error()), maxErrorText)
	}
	return excerpt(r.Excerpt, e), reason
}

// withoutAddresses takes addresses with their ports out of a transport's error, as in "read tcp 10.0.0.1:5070->10.0.0.2:443: connection reset" or
// "lookup example.com on 10.0.0.53:53: no such host": what our network looks like is not for endpoints' owners.
func withoutAddresses(text string) string {
	var kept []string
	for word := range strings.SplitSeq(text, " ") {
		bare := strings.TrimSuffix(word, ":")
		ours, _, _ := strings.Cut(bare, "->")
		if _, err := netip.ParseAddrPort(ours); err != nil {
			kept = append(kept, word)
			continue
		}
		if n := len(kept); n > 1 && kept[n-1] == "on" {
			kept = kept[:n-1]
		}
		if n := len(kept); n > 0 {
			kept[n-1] += word[len(bare):]
		}
	}
	return strings.Join(kept, " ")
}
