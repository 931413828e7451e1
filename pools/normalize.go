package pools

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// maxName is the longest name that is kept as it is, in bytes. A longer one is cut and ends in a hash of the whole.
const maxName = 255

// NormalizeDestination returns the name under which breakers and limits know raw: trimmed, in lower case (ASCII only, no
// IDNA) and, where it looks like a URL or a host, only the host: without scheme, user, path, query, fragment, trailing dots
// and the ports 80 and 443. Another port stays. A plain name such as "sendgrid" or "team/mail" stays a plain name.
// The empty name means no destination; a URL without a host becomes a hash. Normalising twice changes nothing.
func NormalizeDestination(raw string) string {
	s := raw
	for {
		next := normalizeOnce(s)
		if next == s {
			break
		}
		s = next
	}
	switch {
	case s == "" && strings.TrimSpace(raw) != "":
		return hashed(raw) // no host in it: better an odd destination than none, and no limits
	case len(s) > maxName:
		sum := hashed(s)
		return s[:maxName-len(sum)] + sum
	}
	return s
}

func hashed(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return "~" + strconv.FormatUint(h.Sum64(), 16)
}

func normalizeOnce(s string) string {
	s = lowerASCII(strings.TrimSpace(s))
	if i := strings.Index(s, "://"); i >= 0 {
		s = authority(s[i+len("://"):])
	} else if rest, ok := strings.CutPrefix(s, "//"); ok {
		s = authority(rest)
	} else if a := authority(s); strings.ContainsAny(a, ".:@") {
		s = a
	} else {
		return s
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if host, port, ok := cutPort(s); ok && (port == "80" || port == "443" || port == "") {
		s = host
	}
	return strings.TrimRight(s, ".")
}

// authority is everything before the path, query or fragment.
func authority(s string) string {
	if i := strings.IndexAny(s, `/?#\`); i >= 0 {
		return s[:i]
	}
	return s
}

// cutPort splits host:port. It leaves an IPv6 address without brackets alone.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	host, port = s[:i], s[i+1:]
	if strings.Contains(host, ":") && !strings.HasSuffix(host, "]") {
		return s, "", false
	}
	if strings.Trim(port, "0123456789") != "" {
		return s, "", false
	}
	return host, port, true
}

func lowerASCII(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
