package inspect

import (
	"context"
	"time"
)

// Inspector is implemented by brokers that can judge a queue: whether its properties, and those of what stands around it, fit what its
// jobs need, and whether messages are stuck somewhere. Workers ask at their start and log what they hear; `worker queues doctor` prints it.
type Inspector interface {
	// Inspect looks at the queue and changes nothing. No findings mean that all is well. The error says that it could not look.
	Inspect(ctx context.Context, queue string, use Use) ([]Finding, error)
}

// Use is what the jobs of a queue need. Zero fields are unknown.
type Use struct {
	// MaxAttempts is the most attempts of any kind.
	MaxAttempts int
	// LongestRun is the longest timeout of any kind, its grace included.
	LongestRun time.Duration
	// MaxAge is the longest that a job may wait.
	MaxAge time.Duration
}

// Finding is one thing that an operator should know about a queue.
type Finding struct {
	// Queue that it concerns, by the name that the configuration uses.
	Queue string `json:"queue"`
	// Severity orders findings.
	Severity Severity `json:"severity"`
	// What is the case, with the numbers.
	What string `json:"what"`
	// Remedy is what to do, as a command or setting where there is one.
	Remedy string `json:"remedy,omitempty"`
}

// Severity of a finding.
type Severity string

// The severities.
const (
	// SeverityNote tells something that is in order but good to know.
	SeverityNote Severity = "note"
	// SeverityWarning tells what will hurt under load or after a fault.
	SeverityWarning Severity = "warning"
	// SeverityFault tells what loses, blocks or doubles jobs.
	SeverityFault Severity = "fault"
)
