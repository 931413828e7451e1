package sqs

import "time"

// What SQS allows. None of these can be raised, except MaximumMessageSize, which each queue states itself.
const (
	maxBatch       = 10
	maxAttributes  = 10
	maxDelay       = 15 * time.Minute
	maxVisibility  = 12 * time.Hour // from the receive, extensions included
	maxWait        = 20 * time.Second
	maxBatchBytes  = 1 << 20
	defaultMaxSize = 1 << 20
	// inFlightQuota is how many messages of one queue may be received and not deleted. Beyond it a long poll answers nothing, and no error.
	inFlightQuota = 120_000
)

// Retention of queues that are made here. A message that is moved to a standard DLQ keeps its first enqueue time, so the DLQ keeps longer.
const (
	sourceRetention = 7 * 24 * time.Hour
	dlqRetention    = 14 * 24 * time.Hour
)

// reserved is what a message must leave free of its queue's limit, for what the driver adds when it sends a copy and for what a dead
// letter carries of its failure. Queues with tiny limits reserve less.
const reserved = 4096

// sizeLimit is the most that a message may measure in a queue with that MaximumMessageSize. Dead letters may use all of it.
func sizeLimit(queueLimit int, dlq bool) int {
	if dlq {
		return queueLimit
	}
	return queueLimit - min(reserved, queueLimit/16)
}

// seconds rounds up, since SQS counts in whole seconds and nothing may show up early.
func seconds(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return int32((d + time.Second - 1) / time.Second)
}

const (
	// askMargin is how long a request may take to reach SQS before it asks for more than is left of the 12 hours.
	askMargin = 2 * time.Second
	// ceilingMargin keeps a lease that ends at its ceiling, rounded up to whole seconds, below that.
	ceilingMargin = askMargin + 2*time.Second
)

// left is the most that may be asked for, in whole seconds, for a message received at that time. What SQS counts from is later than received.
func left(received, now time.Time) int32 {
	return int32(max(maxVisibility-askMargin-now.Sub(received), 0) / time.Second)
}
