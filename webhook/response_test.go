package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// verdict is the part of a worker.Error that the outcome table speaks of.
type verdict struct {
	Outcome  worker.Outcome
	Breaker  breaker.Outcome
	Cause    dlq.Cause
	After    time.Duration
	Throttle time.Duration
	Hold     bool
}

func verdictOf(t *testing.T, err error) verdict {
	t.Helper()
	if err == nil {
		return verdict{Outcome: worker.OutcomeSucceeded, Breaker: breaker.OutcomeSuccess}
	}
	var e *worker.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	return verdict{e.Outcome, e.Breaker, e.Cause, e.After, e.Throttle, e.Hold}
}

var (
	success  = verdict{Outcome: worker.OutcomeSucceeded, Breaker: breaker.OutcomeSuccess}
	ignored  = verdict{Outcome: worker.OutcomeFailed, Breaker: breaker.OutcomeIgnored}
	outage   = verdict{Outcome: worker.OutcomeFailed, Breaker: breaker.OutcomeFailure}
	rejected = verdict{Outcome: worker.OutcomeRejected, Breaker: breaker.OutcomeIgnored}
	gone     = verdict{Outcome: worker.OutcomeRejected, Breaker: breaker.OutcomeIgnored, Cause: dlq.CauseEndpointGone}
)

// TestEveryStatus goes through all codes that HTTP can express, for both meanings of a client error.
func TestEveryStatus(t *testing.T) {
	t.Parallel()
	for code := 101; code <= 999; code++ {
		for _, meaning := range []ClientErrors{ClientErrorsRetry, ClientErrorsReject} {
			want := ignored
			switch {
			case code >= 200 && code < 300:
				want = success
			case code == 410:
				want = gone
			case code == 408 || code == 425 || code == 429:
			case code >= 500:
				want = outage
			case code >= 400 && meaning == ClientErrorsReject:
				want = rejected
			}
			got := verdictOf(t, judge(Response{Status: code, Phase: PhaseAnswered}, Endpoint{ClientErrors: meaning}, noon))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d with %s (-want +got):\n%s", code, meaning, diff)
			}
		}
	}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout awaiting response headers" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

func TestSilence(t *testing.T) {
	t.Parallel()
	timedOut := outage
	timedOut.Cause = dlq.CauseTimeout
	for _, c := range []struct {
		err  error
		want verdict
		text string
	}{
		{io.EOF, outage, "no answer from endpoint (unknown, may have run): EOF"},
		{context.DeadlineExceeded, timedOut, "no answer from endpoint (unknown, may have run): context deadline exceeded"},
		{timeoutError{}, timedOut, "no answer from endpoint (unknown, may have run): timeout awaiting response headers"},
		{fmt.Errorf("dial tcp: %w", ErrBlocked), rejected, "webhook address is not allowed"},
	} {
		err := judge(Response{Err: c.err, Phase: PhaseUnknown}, Endpoint{}, noon)
		if diff := cmp.Diff(c.want, verdictOf(t, err)); diff != "" || err.Error() != c.text {
			t.Errorf("%v: %q (-want +got):\n%s", c.err, err, diff)
		}
	}
}

// TestRetryAfter: the hint is honoured, bounded, and never shortens anything.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"3": 3 * time.Second, noon.Add(3 * time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"): 3 * time.Second,
		"0": 0, "-5": 0, "abc": 0, "": 0, "3.5": 0, "99999999": schedule.MaxRetryAfter, "99999999999999999999999": schedule.MaxRetryAfter,
		noon.Add(-time.Hour).Format("Mon, 02 Jan 2006 15:04:05 GMT"):  0,
		noon.AddDate(1, 0, 0).Format("Mon, 02 Jan 2006 15:04:05 GMT"): schedule.MaxRetryAfter,
	} {
		for code, throttled := range map[int]bool{429: true, 408: false, 425: false, 503: false, 500: false} {
			got := verdictOf(t, judge(Response{Status: code, RetryAfter: header}, Endpoint{}, noon))
			if got.After != want || got.Throttle > 0 != (throttled && want > 0) || got.Throttle > 0 && got.Throttle != want {
				t.Errorf("%d, Retry-After %q: after %s, throttled %s; want %s", code, header, got.After, got.Throttle, want)
			}
		}
		for _, code := range []int{404, 302, 410} {
			if got := verdictOf(t, judge(Response{Status: code, RetryAfter: header}, Endpoint{}, noon)); got.After != 0 || got.Throttle != 0 {
				t.Errorf("%d honours Retry-After %q: %+v", code, header, got)
			}
		}
	}
}

func TestEndpointSchedule(t *testing.T) {
	t.Parallel()
	own, err := schedule.Constant(time.Minute, schedule.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Response{{Status: 500}, {Status: 404}, {Err: io.EOF}} {
		var e *worker.Error
		if !errors.As(judge(r, Endpoint{Backoff: own}, noon), &e) || !e.Backoff.Equal(own) {
			t.Errorf("%+v: the endpoint's schedule is lost: %+v", r, e)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Response{
		"endpoint answered 503 Service Unavailable":                                                {Status: 503},
		"endpoint answered 503 Service Unavailable, also after a resend on a fresh connection: no": {Status: 503, Resent: true, Excerpt: []byte(" no\n")},
		"endpoint answered 599": {Status: 599},
	} {
		if err := judge(r, Endpoint{}, noon); err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
