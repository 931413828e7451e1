package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bounds of an endpoint's own headers.
const (
	maxHeaders     = 50
	maxHeaderBytes = 8 << 10
)

// reservedHeaders are set by the client, belong to one connection, or change how net/http sends: with an idempotency key the transport
// repeats a request by itself, without reporting it.
var reservedHeaders = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "proxy-authenticate",
	"proxy-authorization", "te", "trailer", "upgrade", "http2-settings", "expect", "accept-encoding", "idempotency-key", "x-idempotency-key",
}

// reservedPrefix is kept for the headers of Standard Webhooks.
const reservedPrefix = "webhook-"

// checkHeaders refuses what may not be sent. Errors name headers, never their values.
func checkHeaders(headers map[string]string) error {
	if len(headers) == 0 {
		return nil
	}
	if len(headers) > maxHeaders {
		return fmt.Errorf("headers: %d are given; use at most %d", len(headers), maxHeaders)
	}
	seen := make(map[string]string, len(headers))
	size := 0
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, lower := headers[name], strings.ToLower(name)
		size += len(name) + len(value)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("header %q: not a valid name; use letters, digits and hyphens", name)
		case slices.Contains(reservedHeaders, lower) || strings.HasPrefix(lower, reservedPrefix):
			return fmt.Errorf("header %q is reserved: it is set by the sender or belongs to the connection; choose another name", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("header %q: its value has line breaks or control characters", name)
		case seen[lower] != "":
			return fmt.Errorf("header %q is given twice, also as %q", name, seen[lower])
		}
		seen[lower] = name
	}
	if size > maxHeaderBytes {
		return fmt.Errorf("headers: %d bytes in all; use at most %d", size, maxHeaderBytes)
	}
	return nil
}

// setHeaders copies checked headers into h.
func setHeaders(h http.Header, headers map[string]string) {
	for name, value := range headers {
		h.Set(name, strings.Trim(value, " \t"))
	}
}
