package dlq

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-go/caisson/dlq/jsonmatch"
)

// Filter selects entries. Zero fields select everything; set fields must all match.
type Filter struct {
	// IDs selects these entries and no others.
	IDs []string `json:"ids,omitempty"`
	// Job selects all runs of one job.
	Job string `json:"job,omitempty"`
	// States selects entries in any of these states. Empty means Dead only.
	States      []State `json:"states,omitempty"`
	Queue       string  `json:"queue,omitempty"`
	Kind        string  `json:"kind,omitempty"`
	Destination string  `json:"destination,omitempty"`
	Cause       Cause   `json:"cause,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	// Since and Until bound StoredAt: Since <= StoredAt < Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Text must occur in the error. The case of ASCII letters does not matter; stores may fold other letters too.
	Text string `json:"text,omitempty"`
	// JSON must all match the payload. A payload that is not JSON, or that was purged, matches none.
	JSON []jsonmatch.Match `json:"json,omitempty"`
}

// Validate returns an error if the filter cannot be asked.
func (f Filter) Validate() error {
	for _, s := range f.States {
		if !slices.Contains(States(), s) {
			return fmt.Errorf("filter: state %q is unknown: use one of %v", s, States())
		}
	}
	for _, m := range f.JSON {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("filter: %w", err)
		}
	}
	return nil
}

// StatesOrDead returns the states that the filter selects.
func (f Filter) StatesOrDead() []State {
	if len(f.States) == 0 {
		return []State{StateDead}
	}
	return f.States
}

// Matches reports whether the filter selects e. An unknown time is before all others. A filter with JSON needs the message, which lists
// leave out.
func (f Filter) Matches(e Entry) bool {
	switch {
	case len(f.IDs) > 0 && !slices.Contains(f.IDs, e.ID),
		!slices.Contains(f.StatesOrDead(), e.State),
		f.Job != "" && f.Job != e.Job,
		f.Queue != "" && f.Queue != e.Queue,
		f.Kind != "" && f.Kind != e.Kind,
		f.Destination != "" && f.Destination != e.Destination,
		f.Cause != "" && f.Cause != e.Cause,
		f.Fingerprint != "" && f.Fingerprint != e.Fingerprint,
		!f.Since.IsZero() && e.StoredAt.Before(f.Since),
		!f.Until.IsZero() && !e.StoredAt.Before(f.Until):
		return false
	}
	if f.Text != "" && !strings.Contains(strings.ToLower(e.Error), strings.ToLower(f.Text)) {
		return false
	}
	return len(f.JSON) == 0 || jsonmatch.All(e.Message.Body, f.JSON)
}
