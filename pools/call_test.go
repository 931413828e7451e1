package pools

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/pools/limiter"
)

var (
	errDown  = errors.New("503")
	errInput = errors.New("400")
)

func policy(t *testing.T, cfg CallConfig[string]) *Policy[string] {
	t.Helper()
	cfg.Name = "mail"
	p, err := NewPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isDown(err error) bool { return errors.Is(err, errDown) }

func constant(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}

// script is a dependency that answers one error after the other and then succeeds.
type script struct {
	errs  []error
	calls int
}

func (s *script) call(context.Context) (string, error) {
	s.calls++
	if s.calls <= len(s.errs) && s.errs[s.calls-1] != nil {
		return "", s.errs[s.calls-1]
	}
	return "ok", nil
}

func TestCallRetriesInsideTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := breaker.New(breaker.Config{MinimumCalls: 2, FailurePercent: new(100)})
		if err != nil {
			t.Fatal(err)
		}
		p := policy(t, CallConfig[string]{Breaker: b, Retryable: isDown, Backoff: constant(time.Second)})
		dep := &script{errs: []error{errDown, errDown}}
		start := time.Now()
		got, err := Call(t.Context(), p, dep.call)
		if got != "ok" || err != nil || dep.calls != 3 || time.Since(start) != 2*time.Second {
			t.Fatalf("%q, %v after %d attempts and %v", got, err, dep.calls, time.Since(start))
		}
		if s := b.Snapshot(time.Now()); s.Calls != 1 || s.Failures != 0 {
			t.Errorf("the breaker saw %+v, want one success", s)
		}
		dep = &script{errs: []error{errDown, errDown, errDown}}
		if _, err = Call(t.Context(), p, dep.call); !errors.Is(err, errDown) || dep.calls != 3 {
			t.Fatalf("%v after %d attempts", err, dep.calls)
		}
		if s := b.Snapshot(time.Now()); s.Calls != 2 || s.Failures != 1 {
			t.Errorf("the breaker saw %+v, want one failure for three attempts", s)
		}
		want := CallSnapshot{Name: "mail", Calls: 2, Failed: 1, Retried: 4}
		if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCallRetriesOnlyWhatIsRetryable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  CallConfig[string]
		errs []error
		want int
	}{
		{"a client's mistake", CallConfig[string]{Retryable: isDown}, []error{errInput}, 1},
		{"nothing without Retryable", CallConfig[string]{}, []error{errDown}, 1},
		{"up to the maximum", CallConfig[string]{Retryable: isDown, MaxAttempts: 2}, []error{errDown, errDown, errDown}, 2},
		{"until it is not", CallConfig[string]{Retryable: isDown, MaxAttempts: 9}, []error{errDown, errInput}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dep := &script{errs: tt.errs}
				_, err := Call(t.Context(), policy(t, tt.cfg), dep.call)
				if err == nil || dep.calls != tt.want {
					t.Errorf("%v after %d attempts, want %d", err, dep.calls, tt.want)
				}
			})
		})
	}
}

func TestCallStopsWhenTheTimeLeftIsTooShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := policy(t, CallConfig[string]{Timeout: 5 * time.Second, MaxAttempts: 9, Retryable: isDown, Backoff: constant(2 * time.Second)})
		dep := &script{errs: times9(errDown)}
		start := time.Now()
		if _, err := Call(t.Context(), p, dep.call); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		if took := time.Since(start); dep.calls != 3 || took != 4*time.Second {
			t.Errorf("%d attempts in %v", dep.calls, took)
		}
	})
}

func times9(err error) []error { return []error{err, err, err, err, err, err, err, err, err} }

func TestCallRetriesSpendTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget, err := budget.New(budget.Config{Form: budget.FormAWS, Tokens: 30, Cost: 14, ThrottleCost: 5})
		if err != nil {
			t.Fatal(err)
		}
		p := policy(t, CallConfig[string]{MaxAttempts: 9, Retryable: isDown, Budget: budget, Backoff: constant(0)})
		dep := &script{errs: times9(errDown)}
		if _, err := Call(t.Context(), p, dep.call); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		if s := p.Snapshot(); dep.calls != 3 || s.Retried != 2 || s.RetryRefused != 1 {
			t.Errorf("%d attempts, %+v", dep.calls, s)
		}
	})
}

func TestCallGivesTheBudgetBackWhenTheDestinationSaysNo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget, err := budget.New(budget.Config{Form: budget.FormAWS, Tokens: 14})
		if err != nil {
			t.Fatal(err)
		}
		r := registry(t, DestinationsConfig{Default: DestinationConfig{Rate: limiter.Config{Rate: new(0.001), Burst: 1}}})
		p := policy(t, CallConfig[string]{Retryable: isDown, Budget: budget, Admit: r.For("mail"), Backoff: constant(0)})
		dep := &script{errs: times9(errDown)}
		_, _ = Call(t.Context(), p, dep.call)
		if left := budget.Left(time.Now()); dep.calls != 1 || left != 1 {
			t.Errorf("%d attempts, %d retries left", dep.calls, left)
		}
	})
}

func TestCallTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := breaker.New(breaker.Config{})
		p := policy(t, CallConfig[string]{
			Timeout: 3 * time.Second, AttemptTimeout: 2 * time.Second, Breaker: b, Backoff: constant(0),
			Retryable: func(error) bool { return true },
		})
		attempts := 0
		start := time.Now()
		_, err := Call(t.Context(), p, func(ctx context.Context) (string, error) {
			attempts++
			<-ctx.Done()
			return "", ctx.Err()
		})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || attempts != 2 || took != 3*time.Second {
			t.Errorf("%v after %d attempts in %v", err, attempts, took)
		}
		if s := b.Snapshot(time.Now()); s.Failures != 1 {
			t.Errorf("a timeout is a failure, the breaker saw %+v", s)
		}
	})
}

func TestCallOfACallerWhoLeftIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := breaker.New(breaker.Config{})
		fell := false
		p := policy(t, CallConfig[string]{
			Breaker: b, Retryable: func(error) bool { return true },
			Fallback: func(context.Context, error) (string, error) { fell = true; return "", nil },
		})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Call(ctx, p, func(ctx context.Context) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		})
		if s := b.Snapshot(time.Now()); !errors.Is(err, context.Canceled) || s.Calls != 0 || s.InUse != 0 || fell {
			t.Errorf("%v, %+v, fell back: %v", err, s, fell)
		}
	})
}

func TestCallFallsBackLast(t *testing.T) {
	t.Parallel()
	bulk, _ := NewBulkhead(BulkheadConfig{Size: 1})
	b, _ := breaker.New(breaker.Config{})
	var cause error
	var events []CallEvent
	p := policy(t, CallConfig[string]{
		Bulkhead: bulk, Breaker: b, Observe: func(e CallEvent) { events = append(events, e) },
		Fallback: func(_ context.Context, err error) (string, error) {
			cause = err
			if errors.Is(err, errInput) {
				return "", errors.New("cache empty")
			}
			return "cached", nil
		},
	})

	try := func(wantErr error, errs ...error) {
		t.Helper()
		dep := &script{errs: errs}
		got, err := Call(t.Context(), p, dep.call)
		if !errors.Is(cause, wantErr) || (err == nil) != (got == "cached") {
			t.Errorf("got %q, %v for %v", got, err, cause)
		}
	}
	try(errDown, errDown)
	try(errInput, errInput)
	b.Force(time.Now(), breaker.OverrideOpen)
	try(ErrRefused)
	var refused *RefusedError
	if !errors.As(cause, &refused) || refused.Verdict.Reason != ReasonForcedOpen {
		t.Errorf("%v does not say why", cause)
	}
	bulk.TryAcquire()
	try(ErrFull)
	want := []CallEvent{CallEventFellBack, CallEventFellBack, CallEventFallbackFailed, CallEventRefused, CallEventFellBack, CallEventRefused, CallEventFellBack}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	if s := p.Snapshot(); s.FellBack != 4 || s.FallbackFailed != 1 || s.Refused != 2 {
		t.Errorf("%+v", s)
	}
}

func TestCallPanicGivesEverythingBack(t *testing.T) {
	t.Parallel()
	for _, cfg := range []CallConfig[string]{{}, {Idempotent: true, HedgeAfter: time.Hour}} {
		bulk, _ := NewBulkhead(BulkheadConfig{Size: 1})
		b, _ := breaker.New(breaker.Config{})
		cfg.Bulkhead, cfg.Breaker = bulk, b
		p := policy(t, cfg)
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_, _ = Call(t.Context(), p, func(context.Context) (string, error) { panic("boom") })
		}()
		if s := b.Snapshot(time.Now()); s.Failures != 1 || s.InUse != 0 || !bulk.Free() {
			t.Errorf("%+v, bulkhead free: %v", s, bulk.Free())
		}
	}
}

func TestCallConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, cfg := range []CallConfig[string]{
		{Timeout: -1}, {AttemptTimeout: -1}, {MaxAttempts: -1}, {HedgeAfter: -1}, {HedgeAfter: time.Second},
	} {
		if _, err := NewPolicy(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
}

// TestCallGRPCBudgetSeesEachAttempt: in gRFC A6 every failed attempt costs a token, before it is asked whether there may be another.
func TestCallGRPCBudgetSeesEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		form := budget.Config{Form: budget.FormGRPC}
		own, err := budget.New(form)
		if err != nil {
			t.Fatal(err)
		}
		r := registry(t, DestinationsConfig{Default: DestinationConfig{Budget: form, Breaker: breaker.Config{FailurePercent: new(0)}}})
		for name, cfg := range map[string]CallConfig[string]{"own": {Budget: own}, "destination": {Admit: r.For("mail")}} {
			cfg.Retryable, cfg.Backoff, cfg.MaxAttempts = isDown, constant(time.Second), 5
			p := policy(t, cfg)
			// Of 10 tokens each attempt takes one; no retry is made at 5 or below.
			for i, want := range []int{5, 1, 1} {
				dep := &script{errs: []error{errDown, errDown, errDown, errDown, errDown}}
				if _, err := Call(t.Context(), p, dep.call); !errors.Is(err, errDown) || dep.calls != want {
					t.Errorf("%s: call %d: %v after %d attempts, want %d", name, i+1, err, dep.calls, want)
				}
			}
		}
	})
}

// TestCallAWSBudgetRefundsWhatARetryCost: in the AWS SDKs a retry that succeeds brings back its own cost, a first try one token. A
// dependency on which every second attempt fails never exhausts the quota; one that is down does after 500/14 retries.
func TestCallAWSBudgetRefundsWhatARetryCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		form := budget.Config{Form: budget.FormAWS}
		own, err := budget.New(form)
		if err != nil {
			t.Fatal(err)
		}
		r := registry(t, DestinationsConfig{Default: DestinationConfig{Budget: form, Breaker: breaker.Config{FailurePercent: new(0)}}})
		for name, cfg := range map[string]CallConfig[string]{"own": {Budget: own}, "destination": {Admit: r.For("mail")}} {
			for _, throttled := range []bool{false, true} {
				cfg.Retryable, cfg.Throttled, cfg.Backoff = isDown, func(error) bool { return throttled }, constant(time.Millisecond)
				p := policy(t, cfg)
				for i := range 200 {
					if _, err := Call(t.Context(), p, (&script{errs: []error{errDown}}).call); err != nil {
						t.Fatalf("%s, throttled %v: call %d: %v", name, throttled, i+1, err)
					}
				}
			}
		}
		for i := range 200 { // the worker's way: each attempt has a permit of its own
			first, _ := r.Admit(time.Now(), Request{Destination: "hooks"})
			first.Done(time.Now(), breaker.OutcomeFailure)
			again, v := r.Admit(time.Now(), Request{Destination: "hooks", Retry: true})
			if !v.OK() {
				t.Fatalf("retry %d: %+v", i+1, v)
			}
			again.Done(time.Now(), breaker.OutcomeSuccess)
		}
		for i := range 100 {
			p, v := r.Admit(time.Now(), Request{Destination: "down", Retry: true})
			if ok := i < 35; v.OK() != ok {
				t.Fatalf("retry %d: %+v", i+1, v)
			}
			p.Done(time.Now(), breaker.OutcomeFailure)
		}
	})
}
