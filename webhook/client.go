package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"
)

// Bounds on what is read of a response. They hold whatever the receiver sends or claims to send.
const (
	// maxRead is how many bytes of a response body are read, so that its connection can serve the next delivery. A longer body costs the
	// connection.
	maxRead = 64 << 10
	// maxExcerpt is how many bytes of a response body are kept.
	maxExcerpt = 4 << 10
	// maxResponseHeaders bounds the status line and headers.
	maxResponseHeaders = 64 << 10
)

// client makes the calls. It speaks HTTP/1.1 only: dead HTTP/2 connections are reused for long, and one of them carries every delivery to a
// host (golang/go#36026, #34941). There is no http.Client, so nothing follows redirects, keeps cookies or wraps errors around the URL.
type client struct {
	transports *transports
}

func newClient(guard *Guard, t Timeouts, roots *x509.CertPool) *client {
	dialer := &net.Dialer{Timeout: t.Dial, KeepAlive: 15 * time.Second, Resolver: guard.resolver, ControlContext: guard.control}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &client{newTransports(&http.Transport{
		Proxy:                  nil, // a proxy would dial in our place, past the guard
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    t.TLS,
		ResponseHeaderTimeout:  t.Header,
		MaxResponseHeaderBytes: maxResponseHeaders,
		MaxIdleConns:           5000,
		MaxIdleConnsPerHost:    defaultConcurrency,
		IdleConnTimeout:        t.Idle,
		DisableCompression:     true, // nothing is unpacked: a small reply cannot become a large one
	})}
}

// close closes idle connections. Running calls go on.
func (c *client) close() { c.transports.close() }

// call is one signed request, ready to be sent.
type call struct {
	target *url.URL
	tls    TLS
	header http.Header
	body   []byte
}

// Response is what came back from one attempt.
type Response struct {
	// Status is the HTTP status code; 0 if no response came.
	Status int
	// Excerpt is the beginning of the body, at most 4 KiB, as it was sent. It may echo secrets: do not log it; [Response.Shown] has a
	// cleaned form.
	Excerpt []byte
	// RetryAfter is the header of that name, unread.
	RetryAfter string
	// Phase is how far the attempt got.
	Phase Phase
	// Resent says that a reused connection was dead and the call was made once more on a fresh one.
	Resent bool
	// Duration is the time from dialling to the end of the body.
	Duration time.Duration
	// Err is why Status is 0; nil otherwise.
	Err error

	header http.Header
}

// send makes the call within timeout, the body included. Where a kept connection turns out to have died, which says nothing about the
// receiver, the same bytes are sent once more on a fresh one. The error says that the TLS options cannot be read.
func (c *client) send(ctx context.Context, call call, timeout time.Duration) (Response, error) {
	start := time.Now()
	if end, ok := ctx.Deadline(); !ok || end.Sub(start) > timeout { // else it ends in time by itself
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	t, err := c.transports.take(call.tls, start)
	if err != nil {
		return Response{}, err
	}
	defer c.transports.give(t)
	r, dead := try(ctx, t.pooled, call)
	if dead && ctx.Err() == nil {
		first := r.Phase
		r, _ = try(ctx, t.fresh, call)
		r.Resent = true
		r.Phase = max(r.Phase, first) // if the first may have run, so may the whole
	}
	r.Duration = time.Since(start)
	return r, nil
}

// try makes the call once. dead says that it failed because a reused connection was gone before any byte came back.
func try(ctx context.Context, transport *http.Transport, call call) (r Response, dead bool) {
	trace := &tracer{}
	resp, err := transport.RoundTrip(call.request(httptrace.WithClientTrace(ctx, trace.hooks())))
	r.Phase = trace.phase()
	if err != nil {
		r.Err = err
		return r, trace.reused.Load() && r.Phase != PhaseAnswered && !isTimeout(err) && !errors.Is(err, ErrBlocked)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 100 { // net/http takes any three digits
		r.Err = fmt.Errorf("unreadable answer: status %03d", resp.StatusCode)
		return r, false
	}
	r.Status, r.RetryAfter, r.header = resp.StatusCode, resp.Header.Get("Retry-After"), resp.Header
	if r.Status != http.StatusSwitchingProtocols { // its body would be the raw connection
		r.Excerpt = readBody(resp.Body)
	}
	return r, false
}

// request leaves GetBody out, so that the transport does not send a body again by itself.
func (c call) request(ctx context.Context) *http.Request {
	req := post.WithContext(ctx) // a copy
	req.URL, req.Host, req.Header = c.target, c.target.Host, c.header
	if len(c.body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
	}
	return req
}

// post is what all requests are copies of.
var post = &http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}

// readBody keeps the beginning and reads on for a while, so that the connection can be used again. An error ends it; the status has decided.
func readBody(body io.Reader) []byte {
	if body == http.NoBody {
		return nil // as most answers have it; reading would make a buffer for it
	}
	kept, err := io.ReadAll(io.LimitReader(body, maxExcerpt))
	if err == nil && len(kept) == maxExcerpt {
		_, _ = io.CopyN(io.Discard, body, maxRead-maxExcerpt) // an error here ends the read; nothing depends on it
	}
	return kept
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
