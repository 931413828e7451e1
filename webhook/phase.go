package webhook

import (
	"net/http/httptrace"
	"sync/atomic"
)

// Phase is how far a delivery got, and so whether the receiver may have acted on it.
type Phase uint8

// The phases.
const (
	// PhaseNotSent: no connection, or no request headers written. The receiver knows nothing.
	PhaseNotSent Phase = iota
	// PhaseUnknown: request headers were written and nothing came back. The receiver may have acted.
	PhaseUnknown
	// PhaseAnswered: at least one byte came back.
	PhaseAnswered
)

// String returns the phase as logs and errors spell it.
func (p Phase) String() string {
	return [...]string{"not sent", "unknown, may have run", "answered"}[min(p, PhaseAnswered)]
}

// tracer follows one request. The transport may call its hooks from other goroutines, and after the call has returned.
type tracer struct {
	reused, wrote, answered atomic.Bool
}

// hooks leaves Got1xxResponse out: setting it removes the transport's bound on interim responses.
func (t *tracer) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			t.reused.Store(info.Reused)
			t.wrote.Store(false) // the transport moved to another connection, which it does only if nothing was written
		},
		WroteHeaders:         func() { t.wrote.Store(true) },
		GotFirstResponseByte: func() { t.answered.Store(true) },
	}
}

func (t *tracer) phase() Phase {
	switch {
	case t.answered.Load():
		return PhaseAnswered
	case t.wrote.Load():
		return PhaseUnknown
	}
	return PhaseNotSent
}
