package webhookapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/caisson-go/caisson/webhook"
)

// Apply makes the change. One that leads to another origin is refused if it says nothing of the credentials that the endpoint has: whoever may
// change a URL, but not read them, could have them sent to a host of his own.
func (c Change) Apply(e *webhook.Endpoint) error {
	before := originOf(e.URL)
	if err := c.fields.read(settings(e)); err != nil {
		return err
	}
	after := originOf(e.URL)
	if after == before || after == "" { // "" is refused as no URL
		return nil
	}
	if kept := c.kept(e); len(kept) > 0 {
		return invalid("url", "leads to another host, port or scheme, where credentials would go that were given for the one before: give them again, or take them out, in the same change: "+
			strings.Join(kept, ", "))
	}
	return nil
}

// kept names the credentials of e of which the change says nothing.
func (c Change) kept(e *webhook.Endpoint) (names []string) {
	headers, _ := parseObject(c.fields["headers"]) // they were read before; nil if there are none
	for name := range e.Headers {
		given := false
		for other := range headers {
			given = given || strings.EqualFold(name, other)
		}
		if !given {
			names = append(names, "header "+name)
		}
	}
	slices.Sort(names)
	tls, _ := parseObject(c.fields["tls"])
	if _, given := tls["key"]; e.TLS.Key != "" && !given {
		names = append(names, "tls.key")
	}
	return names
}

// originOf returns scheme, host and port of a URL in their normal form, "" if it is none.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
