package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL bounds an endpoint's URL, in bytes.
const maxURL = 2048

// checkURL returns the parsed URL with its host normalised, or why it is refused. Path and query stay as they are.
func (g *Guard) checkURL(raw string, allowHTTP bool) (*url.URL, error) {
	u, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Scheme == "http" && !allowHTTP:
		return nil, fmt.Errorf("url %s: http is not allowed here; use https, or set allow_http for this endpoint", shownURL(u))
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("url with scheme %q: use https", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("url %s: user and password are not allowed in it; use a header", shownURL(u))
	case strings.Contains(raw, "#"):
		return nil, fmt.Errorf("url %s: a fragment never reaches the receiver; leave it out", shownURL(u))
	}
	port, err := g.checkPort(u)
	if err != nil {
		return nil, err
	}
	host, err := g.checkHost(u.Hostname(), port)
	if err != nil {
		return nil, fmt.Errorf("url %s: %w", shownURL(u), err)
	}
	u.Host = joinHost(u.Scheme, host, port)
	return u, nil
}

// parseURL is url.Parse without its leniency, and without its errors, which quote the URL.
func parseURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("url of %d bytes: use at most %d", len(raw), maxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }) {
		return nil, errors.New("url: spaces, backslashes, control characters and invalid UTF-8 are not allowed; percent-encode them")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("url cannot be read: write it like https://example.com/hooks")
	}
	if u.Host == "" || u.Opaque != "" {
		return nil, errors.New("url has no host: write it like https://example.com/hooks")
	}
	return u, nil
}

func (g *Guard) checkPort(u *url.URL) (uint16, error) {
	text := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("url %s: port %q is not a number from 1 to 65535", shownURL(u), text)
	}
	if g.ports != nil && !slices.Contains(g.ports, uint16(port)) {
		return 0, fmt.Errorf("url %s: port %d is not allowed; allowed are %d (webhook.ports)", shownURL(u), port, g.ports)
	}
	return uint16(port), nil
}

// checkHost returns the host as it will be looked up: an address in its one canonical form, or an ASCII name in lower case.
func (g *Guard) checkHost(host string, port uint16) (string, error) {
	if strings.ContainsAny(host, "%") {
		return "", errors.New("host has a zone or an escape; write the plain name or address")
	}
	if _, err := netip.ParseAddr(host); err != nil {
		// net/http maps names in the same way before it dials, so a check of the unmapped name would check another host.
		ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
		if err != nil {
			return "", errors.New("host is not a valid name")
		}
		host = strings.TrimSuffix(strings.ToLower(ascii), ".")
		if again, err := idna.Lookup.ToASCII(host); err != nil || again != host { // %80 in a host, for one
			return "", errors.New("host is not a valid name")
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := g.checkAddress(netip.AddrPortFrom(ip, port)); err != nil {
			return "", err
		}
		return ip.Unmap().String(), nil
	}
	switch {
	case host == "localhost" && g.allowsLoopback():
	case host == "" || len(host) > 253:
		return "", fmt.Errorf("host of %d bytes: use 1 to 253", len(host))
	case !strings.Contains(host, "."):
		return "", errors.New("host has no dot: use a full name, such as hooks.example.com")
	case slices.ContainsFunc(strings.Split(host, "."), func(label string) bool { return label == "" || len(label) > 63 }):
		return "", errors.New("host has a label that is empty or longer than 63 bytes")
	case endsInNumber(host):
		// Such names are addresses to some resolvers: 127.1, 0x7f.0.0.1, 0177.0.0.1 (WHATWG URL, "ends in a number").
		return "", errors.New("host is a number in an uncommon spelling; write a name, or four decimal numbers")
	}
	return host, nil
}

func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	return strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == ""
}

// joinHost leaves default ports out, so that the Host header is what the receiver expects.
func joinHost(scheme, host string, port uint16) string {
	if scheme == "https" && port == 443 || scheme == "http" && port == 80 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// shownURL is the part of a URL that errors and logs may hold. Paths and queries can carry secrets.
func shownURL(u *url.URL) string {
	shown := u.Scheme + "://" + u.Host
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		shown += "/..."
	}
	return shown
}
