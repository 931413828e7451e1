package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

var hostileURLs = []string{
	"", " ", "https://", "https:///path", "//example.com", "/path", "example.com", "https:example.com", "https:/example.com",
	"http://example.com", "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)", "unix:///run/docker.sock",
	"https://user@example.com", "https://user:pw@example.com", "https://example.com@evil.example", "https://:@example.com",
	"https://example.com#", "https://example.com/#f", "https://example.com/a#@b",
	"https://example.com:22", "https://example.com:0", "https://example.com:65536", "https://example.com:-1", "https://example.com:8080",
	"https://example.com:443:80", "https://example.com:٤٤٣", "https://example.com:port",
	"https://localhost", "https://localhost.", "https://LOCALHOST", "https://intranet", "https://metadata", "https://com.",
	"https://127.0.0.1", "https://127.1", "https://127.0.1", "https://0", "https://0x7f.0.0.1", "https://0x7f000001", "https://0177.0.0.1",
	"https://2130706433", "https://127.0.0.1.", "https://127.0.0.0x1", "https://1.2.3.4.5", "https://256.1.1.1", "https://1.2.3.08",
	"https://example.1", "https://example.0x", "https://127。0。0。1", "https://127．0．0．1", "https://１２７.0.0.1", "https://①②⑦.0.0.1",
	"https://loc\u00adalhost", "https://ⓛocalhost",
	"https://169.254.169.254/latest/meta-data/", "https://[::1]", "https://[::ffff:127.0.0.1]", "https://[::ffff:a9fe:a9fe]",
	"https://[fe80::1%25eth0]", "https://[fe80::1%25lo]:443", "https://[::1%25lo]", "https://[64:ff9b::7f00:1]", "https://[::]", "https://[fd00::1]",
	"https://::1", "https://[::1", "https://[1.2.3.4]", "https://[example.com]",
	"https://exa mple.com", "https://example.com/a b", "https://example.com\\@127.0.0.1", "https://example.com\t", "https://example.com\r\nHost: a",
	"https://example.com/\x00", "https://example.com/\xff", "\nhttps://example.com", "https://%31%32%37.0.0.1", "https://example%2ecom", "https://0.A%80", "https://a%ff.example.com",
	"https://.example.com", "https://example..com", "https://..", "https://-a.example.com", "https://a_b.example.com", "https://*.example.com",
	"https://xn--.com", "https://xn--a.com", "https://" + strings.Repeat("a", 64) + ".com", "https://" + strings.Repeat("a.", 130) + "com",
	"https://example.com/" + strings.Repeat("a", maxURL),
}

func TestHostileURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range hostileURLs {
		if u, err := defaultGuard.checkURL(raw, false); err == nil {
			t.Errorf("%q was accepted as %s", raw, u)
		}
	}
	if n := len(hostileURLs) + len(hostileAddresses); n < 120 {
		t.Errorf("only %d hostile cases", n)
	}
}

func TestNormalisedURLs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://example.com":                      "https://example.com",
		"HTTPS://EXAMPLE.com:443/A?b=C":            "https://example.com/A?b=C",
		"https://example.com./x":                   "https://example.com/x",
		"https://example.com。/x":                   "https://example.com/x",
		"https://example.com:/":                    "https://example.com/",
		"https://example.com:8443/":                "https://example.com:8443/",
		"https://example.com:80/":                  "https://example.com:80/",
		"https://bücher.example/ü":                 "https://xn--bcher-kva.example/%C3%BC",
		"https://1.1.1.1/":                         "https://1.1.1.1/",
		"https://[2606:4700:4700:0:0::1111]/":      "https://[2606:4700:4700::1111]/",
		"https://[::ffff:1.1.1.1]:8443/":           "https://1.1.1.1:8443/",
		"https://[2606:4700::1]:8443":              "https://[2606:4700::1]:8443",
		"https://example.com/a%2Fb?q=%20&sig=a+b/": "https://example.com/a%2Fb?q=%20&sig=a+b/",
		"https://1.example.com":                    "https://1.example.com",
		"https://0xcafe.example":                   "https://0xcafe.example",
	} {
		u, err := defaultGuard.checkURL(raw, false)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if u.String() != want {
			t.Errorf("%s: %s, want %s", raw, u, want)
		}
	}
	for raw, want := range map[string]string{
		"http://localhost:9001/x": "http://localhost:9001/x", "http://127.0.0.1:9001": "http://127.0.0.1:9001", "http://[::1]:80/": "http://[::1]/",
	} {
		if u, err := localGuard(t).checkURL(raw, true); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v; want %s", raw, u, err, want)
		}
	}
}

func TestURLErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://user:hunter2@example.com/hunter2?k=hunter2", "http://example.com/hunter2?hunter2", "https://example.com/hunter2#hunter2",
		"https://example.com:22/hunter2?hunter2", "https://user:hunter2@exa mple.com", "https://user:hunter2@example.com:abc/",
		"https://localhost/hunter2?hunter2", "https://example.com/%zz?hunter2", "https://user:hun%zzter2@example.com/hunter2", "mailto:hunter2",
	} {
		_, err := defaultGuard.checkURL(raw, false)
		if err == nil {
			t.Errorf("%s was accepted", raw)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows it: %v", raw, err)
		}
	}
}

// FuzzURL checks what must hold of every URL that is accepted, whatever it looked like before.
func FuzzURL(f *testing.F) {
	for _, raw := range hostileURLs {
		f.Add(raw)
	}
	f.Add("https://bücher.example:8443/a?b")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := defaultGuard.checkURL(raw, false)
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
			t.Errorf("%q gives %#v", raw, u)
		}
		host, port := u.Hostname(), u.Port()
		if port == "" {
			port = "443"
		}
		if port != "443" && port != "80" && port != "8443" {
			t.Errorf("%q gives port %s", raw, port)
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			n, _ := strconv.Atoi(port)
			if defaultGuard.checkAddress(netip.AddrPortFrom(ip, uint16(n))) != nil {
				t.Errorf("%q gives the blocked address %s", raw, ip)
			}
		} else if !strings.Contains(host, ".") || strings.HasSuffix(host, ".") || host != strings.ToLower(host) || net.ParseIP(host) != nil || endsInNumber(host) {
			t.Errorf("%q gives host %q", raw, host)
		}
		for i := range len(host) {
			if host[i] <= ' ' || host[i] > '~' {
				t.Errorf("%q gives host %q", raw, host)
			}
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.RequestURI() != u.RequestURI() {
			t.Errorf("%q gives %q, which reads as %v, %v", raw, u, again, err)
		}
		if twice, err := defaultGuard.checkURL(u.String(), false); err != nil || twice.String() != u.String() {
			t.Errorf("%q: a second check gives %v, %v", raw, twice, err)
		}
	})
}
