package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// maxErrorText bounds a transport's error, which can quote what the receiver sent instead of HTTP.
const maxErrorText = 300

// DeliveryError is why a delivery did not succeed. It is what the ledger and the dead letter keep.
type DeliveryError struct {
	// Status is the HTTP status code; 0 if no response came.
	Status int
	// Phase is how far the attempt got.
	Phase Phase
	// Resent says that a second, immediate call was made because a kept connection was dead.
	Resent bool
	// Excerpt is the beginning of the response's body as one line of text, with the endpoint's header values and URL path left out.
	Excerpt string
	// Err is why there was no response; nil if there was one.
	Err error
}

func (e *DeliveryError) Error() string {
	var b strings.Builder
	if e.Status > 0 {
		fmt.Fprintf(&b, "endpoint answered %d", e.Status)
		if text := http.StatusText(e.Status); text != "" {
			b.WriteString(" " + text)
		}
	} else {
		fmt.Fprintf(&b, "no answer from endpoint (%s): %s", e.Phase, dlq.CapError(e.Err.Error(), maxErrorText))
	}
	if e.Resent {
		b.WriteString(", also after a resend on a fresh connection")
	}
	if e.Excerpt != "" {
		b.WriteString(": " + e.Excerpt)
	}
	return b.String()
}

// Unwrap returns why there was no response.
func (e *DeliveryError) Unwrap() error { return e.Err }

// judge turns what came back into what becomes of the attempt; nil is success. It is pure.
func judge(r Response, e Endpoint, now time.Time) error {
	switch {
	case r.Status == 0:
		return judgeSilence(r, e)
	case 200 <= r.Status && r.Status < 300:
		return nil
	}
	out := &worker.Error{Outcome: worker.Failed, Err: failure(r, e), Backoff: e.Schedule, Breaker: pools.Ignored}
	switch {
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly, r.Status == http.StatusTooManyRequests:
		out.After, _ = schedule.ParseRetryAfter(r.RetryAfter, now)
		if r.Status == http.StatusTooManyRequests {
			out.Gate = out.After
		}
	case r.Status == http.StatusGone:
		out.Outcome, out.Cause = worker.Rejected, dlq.CauseEndpointGone
	case r.Status >= 500:
		out.Breaker = pools.Failure
		out.After, _ = schedule.ParseRetryAfter(r.RetryAfter, now)
	case r.Status >= 400 && e.ClientErrors == ClientErrorsReject:
		out.Outcome = worker.Rejected
	}
	return out
}

// judgeSilence is for attempts to which no response came.
func judgeSilence(r Response, e Endpoint) error {
	if errors.Is(r.Err, ErrBlocked) {
		return &worker.Error{Outcome: worker.Rejected, Err: ErrBlocked, Breaker: pools.Ignored}
	}
	out := &worker.Error{Outcome: worker.Failed, Err: failure(r, e), Backoff: e.Schedule, Breaker: pools.Failure}
	if isTimeout(r.Err) {
		out.Cause = dlq.CauseTimeout
	}
	return out
}

func failure(r Response, e Endpoint) *DeliveryError {
	return &DeliveryError{Status: r.Status, Phase: r.Phase, Resent: r.Resent, Excerpt: excerpt(r.Excerpt, e), Err: r.Err}
}

// excerpt makes one printable line of a body. Receivers like to echo what they were sent: header values and the URL's path and query are
// taken out, since they may be secret.
func excerpt(body []byte, e Endpoint) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, leaveOut(strings.ToValidUTF8(string(body), "\uFFFD"), e))
	return strings.Join(strings.Fields(text), " ")
}

// quotedError is a transport's error with what may be secret taken out: net/http quotes what it could not read as HTTP.
type quotedError struct {
	text string
	err  error
}

func (q *quotedError) Error() string { return q.text }

func (q *quotedError) Unwrap() error { return q.err }

// hideEchoes returns err, or an error like it that does not quote what e was sent.
func hideEchoes(err error, e Endpoint) error {
	if err == nil {
		return nil
	}
	if text := leaveOut(err.Error(), e); text != err.Error() {
		return &quotedError{text, err}
	}
	return err
}

func leaveOut(text string, e Endpoint) string {
	for _, secret := range echoes(e) {
		text = strings.ReplaceAll(text, secret, "[left out]")
	}
	return text
}

// minEcho is the shortest text that is worth hiding: shorter ones are no secrets and occur by chance.
const minEcho = 6

// echoes lists what a response may not repeat, as it was sent and in quotes, longest first, so that no part of one is left over.
func echoes(e Endpoint) []string {
	var list []string
	if u, err := url.Parse(e.URL); err == nil {
		list = append(list, u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery)
	}
	for _, value := range e.Headers {
		list = append(list, strings.Trim(value, " \t"))
	}
	for _, text := range list {
		quoted := strconv.Quote(text)
		list = append(list, quoted[1:len(quoted)-1])
	}
	list = slices.DeleteFunc(list, func(s string) bool { return len(s) < minEcho })
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}
