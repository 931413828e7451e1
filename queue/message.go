package queue

import "time"

// Message is what a broker carries: opaque body bytes and string headers.
// Caisson's own metadata is one header, [HeaderEnvelope]; all others belong to the producer and are kept as they are.
type Message struct {
	// Body is delivered byte for byte. Nil and empty are the same.
	Body []byte
	// Headers may be nil. Keys are case-sensitive.
	Headers map[string]string
}

// Publication is one message on its way to a queue.
type Publication struct {
	Message

	// Delay hides the message for at least this long. Zero means visible at once; negative counts as zero.
	// A delay above [Capabilities.MaxDelay] is refused with [ErrDelayTooLong].
	Delay time.Duration

	// Group is the unit of order on a FIFO queue and the unit of fairness on a fair queue, usually the destination.
	// Empty means none. Brokers without groups ignore it.
	Group string

	// DedupID names this publication on brokers that drop duplicates by id (SQS FIFO): a replay needs a new one.
	// Empty lets the driver derive one. Brokers without deduplication ignore it.
	DedupID string
}

// PublishResult tells what became of one publication of a batch.
type PublishResult struct {
	// ID is the broker's own id for the message. It is not the job's id and does not survive a redrive.
	ID string
	// Err is nil once the broker confirmed the message. A message with an error may or may not be in the queue:
	// publish it again, the job's key makes that safe.
	Err error
}
