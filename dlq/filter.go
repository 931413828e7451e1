package dlq

import "time"

// Filter selects entries. Zero fields select everything; set fields must all match.
type Filter struct {
	// IDs selects these entries and no others.
	IDs []string
	// States selects entries in any of these states. Empty means Dead only.
	States      []State
	Queue       string
	Kind        string
	Destination string
	Cause       Cause
	Fingerprint string
	// Since and Until bound StoredAt: Since <= StoredAt < Until.
	Since, Until time.Time
	// Text must occur in the error. The case of ASCII letters does not matter; stores may fold other letters too.
	Text string
}

// StatesOrDead returns the states that the filter selects.
func (f Filter) StatesOrDead() []State {
	if len(f.States) == 0 {
		return []State{Dead}
	}
	return f.States
}
