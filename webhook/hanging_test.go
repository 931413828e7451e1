package webhook

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-go/caisson/dlq"
	"github.com/caisson-go/caisson/schedule"
	"github.com/caisson-go/caisson/worker"
)

// deafListener returns the address of a host that answers no attempt to connect: its queue of connections is full. It tells got at once.
func deafListener(t *testing.T, got chan<- struct{}) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
	dialer := net.Dialer{Timeout: 100 * time.Millisecond}
	for {
		c, err := dialer.DialContext(t.Context(), "tcp4", address)
		if err != nil {
			got <- struct{}{}
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
}

// muteListener returns the address of a host that says the same few bytes to everybody once it has got something, then nothing. It tells got
// before.
func muteListener(t *testing.T, says string, got chan<- struct{}) string {
	t.Helper()
	listener := listen(t, "127.0.0.1:0")
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096))
				got <- struct{}{}
				_, _ = io.WriteString(c, says)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	return listener.Addr().String()
}

// An endpoint may hang in each phase of a call, and different things may end that call first. What becomes of the job, what its breaker hears,
// and what the log of attempts says does not depend on who had the shortest patience, but on whether the endpoint had what it is due.
func TestHangingInEachPhase(t *testing.T) {
	t.Parallel()
	const brief = 300 * time.Millisecond
	type end struct {
		timeouts Timeouts
		endpoint time.Duration
		deadline time.Duration
		stop     bool
	}
	ends := map[string]end{
		"total timeout":      {timeouts: Timeouts{Total: brief}},
		"endpoint's timeout": {endpoint: brief},
		"phase's timeout":    {timeouts: Timeouts{Dial: brief, TLS: brief, Header: brief, Total: time.Second}},
		"deadline":           {deadline: 3 * time.Second}, // long enough for a busy machine to begin
		"stop":               {stop: true},
	}
	for phase, c := range map[string]struct {
		url   func(t *testing.T, got chan<- struct{}) string
		phase Phase
		ok    bool
	}{
		"dial":    {func(t *testing.T, got chan<- struct{}) string { return "http://" + deafListener(t, got) }, PhaseNotSent, false},
		"TLS":     {func(t *testing.T, got chan<- struct{}) string { return "https://" + muteListener(t, "", got) }, PhaseNotSent, false},
		"headers": {func(t *testing.T, got chan<- struct{}) string { return "http://" + muteListener(t, "", got) }, PhaseUnknown, false},
		"half of one": {func(t *testing.T, got chan<- struct{}) string {
			return "http://" + muteListener(t, "HTTP/1.1 200 OK\r\nContent-Le", got)
		}, PhaseAnswered, false},
		"body": {func(t *testing.T, got chan<- struct{}) string {
			return "http://" + muteListener(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", got)
		}, PhaseAnswered, true},
	} {
		for by, ends := range ends {
			if by == "stop" && c.phase == PhaseAnswered {
				continue // nobody sees from outside how much of an answer was read when the stop comes: what is to become of it cannot be said
			}
			t.Run(phase+", "+by, func(t *testing.T) {
				t.Parallel()
				got := make(chan struct{}, 10)
				e := endpointAt("shop", c.url(t, got))
				e.Timeout = ends.endpoint
				var err error
				if e.Backoff, err = schedule.Fixed([]time.Duration{time.Millisecond}, schedule.JitterNone); err != nil {
					t.Fatal(err)
				}
				attempts := make(chan Attempt, 10)
				r := newRig(t)
				w := r.start(Config{Timeouts: ends.timeouts, Observe: func(a Attempt) { attempts <- a }}, e)
				job := NewDelivery("shop", "evt_1", []byte("{}"), nil)
				if ends.deadline > 0 {
					job.Deadline = time.Now().Add(ends.deadline)
				}
				r.enqueue(job)
				if ends.stop {
					<-got
					awaitCall(t, w)
					w.stop()
				}
				s := r.await(1, any1)[0]
				if len(attempts) == 0 { // it is observed before it is settled
					t.Fatalf("settled without an attempt: %s, %v", s.Outcome, s.Err)
				}
				a := <-attempts
				if a.Response.Phase != c.phase || strings.Contains(a.Err, "127.0.0.1") {
					t.Errorf("observed phase %s, error %q", a.Response.Phase, a.Err)
				}
				neutral := ends.stop || ends.deadline > 0
				switch {
				case c.ok: // the status decides
					if s.Outcome != worker.OutcomeSucceeded || a.CutOff || a.Err != "" || a.Response.Status != 200 {
						t.Errorf("%s, %v; observed %+v", s.Outcome, s.Err, a)
					}
					closed(t, w, "shop", 0)
					return
				case a.CutOff != neutral || a.Err == "" || a.Response.Status != 0:
					t.Errorf("observed %+v", a)
				}
				switch {
				case ends.stop:
					if s.Outcome != worker.OutcomeInterrupted || !errors.Is(s.Err, worker.ErrStopping) {
						t.Errorf("%s, %v", s.Outcome, s.Err)
					}
					closed(t, w, "shop", 0)
				case neutral:
					if s.Outcome != worker.OutcomeFailed || !strings.Contains(s.Err.Error(), c.phase.String()) {
						t.Errorf("%s, %v", s.Outcome, s.Err)
					}
					closed(t, w, "shop", 0)
				default:
					var timeout net.Error
					if s.Outcome != worker.OutcomeFailed || !errors.Is(s.Err, worker.ErrTimeout) && !errors.As(s.Err, &timeout) {
						t.Errorf("%s, %v", s.Outcome, s.Err)
					}
					r.await(1, func(s worker.Settled) bool { return s.Settlement == worker.SettlementDeadLetter })
					closed(t, w, "shop", 2)
					if list := r.entries(); len(list) != 1 || list[0].Cause != dlq.CauseTimeout || list[0].AttemptCount != 2 {
						t.Errorf("entries %+v", list)
					}
				}
			})
		}
	}
}

// awaitCall waits until a delivery is under way.
func awaitCall(t *testing.T, w running) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		now := <-tick.C
		if d, ok := w.Destinations().Lookup("shop", now); ok && d.InUse > 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("no call began")
		}
	}
}
