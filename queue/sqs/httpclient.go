package sqs

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Timeouts of a request, each beyond what the server may take by design.
const (
	callTimeout = 10 * time.Second
	pollMargin  = 10 * time.Second // beyond the wait of a long poll
)

// copyClient sends a copy of each request's body. The SDK's own bodies are closed while the transport still reads them now and then, which
// breaks the connection under the answer: a batch that was received is lost until its visibility timeout is over.
type copyClient struct{ transport http.RoundTripper }

// Do implements the SDK's HTTPClient.
func (c copyClient) Do(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return c.transport.RoundTrip(req)
	}
	// With room for the whole body and the read that finds its end: else it is copied again each time that it outgrows its room.
	read := bytes.NewBuffer(make([]byte, 0, max(req.ContentLength, 0)+bytes.MinRead))
	if _, err := read.ReadFrom(req.Body); err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	body := read.Bytes()
	if err := req.Body.Close(); err != nil {
		return nil, fmt.Errorf("close the request's body: %w", err)
	}
	own := req.WithContext(req.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	own.ContentLength = int64(len(body))
	return c.transport.RoundTrip(own)
}

// newTransport is made for long polls: as many idle connections as there may be pollers, so that none is closed and opened for each poll.
func newTransport() *http.Transport {
	dialer := &net.Dialer{
		Timeout: 5 * time.Second,
		// A long poll is silent for many seconds: without these, nobody would notice in that time that the other end is gone.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: maxWait + pollMargin,
		ExpectContinueTimeout: time.Second,
	}
}

// closeIdle closes the connections of a transport that was made here.
func closeIdle(rt http.RoundTripper) {
	if t, ok := rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
