package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Check is one condition of readiness.
type Check struct {
	// Name says what is checked, for example "subscription". Shown on /readyz.
	Name string
	// Probe returns nil while the condition holds, else why it does not. It is called once per request to /readyz, at the same
	// time as other probes, and must return soon after ctx ends. Its error is shown: it must hold no secret.
	Probe func(ctx context.Context) error
}

// readiness is the body of /readyz.
type readiness struct {
	Ready  bool          `json:"ready"`
	Checks []checkResult `json:"checks,omitempty"`
}

type checkResult struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Reason is why the check fails.
	Reason string `json:"reason,omitempty"`
}

// readyz answers 200 if every check holds, else 503 with the reasons.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	state := s.ready(r)
	writeJSON(w, statusOf(state), state)
}

// readyzForAll answers orchestrators, whose probes carry no credentials: whether, but not why.
func (s *Server) readyzForAll(w http.ResponseWriter, r *http.Request) {
	state := s.ready(r)
	writeJSON(w, statusOf(state), readiness{Ready: state.Ready})
}

func statusOf(r readiness) int {
	if r.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (s *Server) ready(r *http.Request) readiness {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.CheckTimeout)
	defer cancel()
	state := readiness{Ready: true, Checks: make([]checkResult, len(s.cfg.Checks))}
	var wg sync.WaitGroup
	for i, check := range s.cfg.Checks {
		wg.Go(func() { state.Checks[i] = run(ctx, check, s.cfg.CheckTimeout) })
	}
	wg.Wait()
	for _, c := range state.Checks {
		state.Ready = state.Ready && c.OK
	}
	return state
}

// run calls one probe. A panic in it is a failing check, not the end of the page.
func run(ctx context.Context, c Check, limit time.Duration) (result checkResult) {
	result.Name = c.Name
	defer func() {
		if p := recover(); p != nil {
			result.OK, result.Reason = false, fmt.Sprintf("check panicked: %v", p)
		}
	}()
	err := c.Probe(ctx)
	switch {
	case err == nil:
		result.OK = true
	case ctx.Err() != nil:
		result.Reason = fmt.Sprintf("no answer within %s: %v", limit, err)
	default:
		result.Reason = err.Error()
	}
	return result
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	write(w, status, "application/json", body)
}

func write(w http.ResponseWriter, status int, contentType string, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that left gets no answer
}
