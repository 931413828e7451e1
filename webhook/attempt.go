package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// maxRequestID bounds what is kept of a receiver's name for a request.
const maxRequestID = 128

// requestIDHeaders are where receivers, and what stands in front of them, name a request; the first that is set counts.
var requestIDHeaders = []string{
	"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "X-Amz-Request-Id", "X-Ms-Request-Id", "X-Correlation-Id", "X-Vercel-Id", "Cf-Ray",
}

// Succeeded reports whether the endpoint took the delivery.
func (a Attempt) Succeeded() bool { return a.Response.Status >= 200 && a.Response.Status < 300 }

// Neutral reports whether it says nothing about the endpoint: the call was cut off, or the address is one that is never called.
func (a Attempt) Neutral() bool { return a.CutOff || errors.Is(a.Response.Err, ErrBlocked) }

// WentTo reports whether the call went to the URL that e has now; true also where nobody knows any more.
func (a Attempt) WentTo(e Endpoint) bool {
	return a.Endpoint == e.ID && (a.url == "" || a.url == e.URL)
}

// observe tells [Config.Observe] of a call. Nothing is cleaned where nobody looks.
func (s *Sender) observe(ctx context.Context, e Endpoint, d Delivery, job *worker.Job, r Response, cut bool) {
	if s.cfg.Observe == nil {
		return
	}
	a := Attempt{
		Endpoint: e.ID, Event: d.ID, Job: job.ID, Number: job.Attempt, Tenant: e.Tenant, At: time.Now(), Response: r,
		RequestID: requestID(r.header, e), CutOff: cut, url: e.URL,
	}
	if a.Excerpt, a.Err = r.Shown(e); a.CutOff {
		a.Err = context.Cause(ctx).Error()
	}
	s.cfg.Observe(a)
}

func requestID(h http.Header, e Endpoint) string {
	for _, name := range requestIDHeaders {
		if value := h.Get(name); value != "" {
			id := oneLine(strings.ToValidUTF8(leaveOut(value, e, false), "\uFFFD"))
			return strings.ToValidUTF8(id[:min(len(id), maxRequestID)], "")
		}
	}
	return ""
}
