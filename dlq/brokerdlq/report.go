package brokerdlq

// ScanReport tells how far a scan of dead-letter queues came.
type ScanReport struct {
	// Looked is how many dead letters were looked at.
	Looked int `json:"-"`
	// PassedOver is how many dead letters did not match. They were given back.
	PassedOver int `json:"passed_over"`
	// Later is how many came after the scan began. They were given back.
	Later int `json:"later,omitempty"`
	// Copies is how many further copies of a letter that left were removed.
	Copies int `json:"copies,omitempty"`
	// Incomplete says that the scan has not met all: it ended before, or the broker counts messages that somebody else has leased or that are
	// on their way back. Not every broker counts those.
	Incomplete bool `json:"incomplete,omitempty"`
}
