package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/internal/truncate"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// maxErrorText bounds a transport's error, which can quote what the receiver sent instead of HTTP.
const maxErrorText = 300

// deliveryError is why a delivery did not succeed. It is what the ledger and the dead letter keep.
type deliveryError struct {
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

func (e *deliveryError) Error() string {
	var b strings.Builder
	if e.Status > 0 {
		fmt.Fprintf(&b, "endpoint answered %d", e.Status)
		if text := http.StatusText(e.Status); text != "" {
			b.WriteString(" " + text)
		}
	} else {
		fmt.Fprintf(&b, "no answer from endpoint (%s): %s", e.Phase, truncate.Text(e.Err.Error(), maxErrorText))
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
func (e *deliveryError) Unwrap() error { return e.Err }

// judge turns what came back into what becomes of the attempt; nil is success. It is pure.
func judge(r Response, e Endpoint, now time.Time) error {
	switch {
	case r.Status == 0:
		return judgeSilence(r, e)
	case 200 <= r.Status && r.Status < 300:
		return nil
	}
	out := &worker.Error{Outcome: worker.OutcomeFailed, Err: failure(r, e), Backoff: e.Backoff, Breaker: breaker.OutcomeIgnored}
	switch {
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly, r.Status == http.StatusTooManyRequests:
		out.After, _ = schedule.ParseRetryAfter(r.RetryAfter, now)
		if r.Status == http.StatusTooManyRequests {
			out.Throttle = out.After
		}
	case r.Status == http.StatusGone:
		out.Outcome, out.Cause = worker.OutcomeRejected, dlq.CauseEndpointGone
	case r.Status >= 500:
		out.Breaker = breaker.OutcomeFailure
		out.After, _ = schedule.ParseRetryAfter(r.RetryAfter, now)
	case r.Status >= 400 && e.ClientErrors == ClientErrorsReject:
		out.Outcome = worker.OutcomeRejected
	}
	return out
}

// judgeSilence is for attempts to which no response came.
func judgeSilence(r Response, e Endpoint) error {
	if errors.Is(r.Err, ErrBlocked) {
		return &worker.Error{Outcome: worker.OutcomeRejected, Err: ErrBlocked, Breaker: breaker.OutcomeIgnored}
	}
	out := &worker.Error{Outcome: worker.OutcomeFailed, Err: failure(r, e), Backoff: e.Backoff, Breaker: breaker.OutcomeFailure}
	if isTimeout(r.Err) || errors.Is(r.Err, worker.ErrTimeout) {
		out.Cause = dlq.CauseTimeout
	}
	return out
}

func failure(r Response, e Endpoint) *deliveryError {
	return &deliveryError{Status: r.Status, Phase: r.Phase, Resent: r.Resent, Excerpt: excerpt(r.Excerpt, e), Err: r.Err}
}

// excerpt makes one printable line of a body, without what that may repeat of secrets.
func excerpt(body []byte, e Endpoint) string {
	return oneLine(strings.ToValidUTF8(leaveOut(string(body), e, len(body) >= maxExcerpt), "\uFFFD"))
}

// oneLine leaves printable characters and single spaces.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
