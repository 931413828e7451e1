package queue

import (
	"context"
	"time"
)

// Broker is a message broker as Caisson sees it. Implementations are safe for concurrent use.
type Broker interface {
	// Capabilities tells what this broker can do with the queue of that name, which need not exist. The answer depends on nothing but the
	// name and never changes during the life of a Broker.
	Capabilities(queue string) Capabilities

	// Publish stores pubs in queue and returns one result for each, in the same order. It returns when every
	// message is confirmed or has failed; a nil Err means durable by the broker's own standard. Large batches are
	// cut by the driver. A done ctx fails what is not confirmed yet with the context's error.
	Publish(ctx context.Context, queue string, pubs []Publication) []PublishResult

	// Subscribe starts to take messages from queue. ctx bounds only the call, not the subscription.
	Subscribe(ctx context.Context, queue string, cfg SubscribeConfig) (Subscription, error)

	// Depth counts the messages of queue. Fields that the broker cannot know are absent ([Count.Known]), not zero.
	Depth(ctx context.Context, queue string) (Depth, error)

	// CreateQueue makes the queue if it is missing and is a no-op if it is there. It returns an error if a queue of that
	// name exists with properties that Caisson cannot work with.
	CreateQueue(ctx context.Context, queue string) error

	// Queues lists the queues that this broker connection can see, sorted by name.
	Queues(ctx context.Context) ([]QueueInfo, error)

	// Close ends all subscriptions and frees resources. Unsettled leases stay leased until their deadline, or are given back at once by
	// brokers that tie them to the connection. Close
	// flushes what was accepted but not yet sent. Later calls return [ErrClosed]. Closing twice is a no-op.
	Close() error
}

// SubscribeConfig tunes a subscription.
type SubscribeConfig struct {
	// Lease is how long a received message stays exclusive before it must be extended or settled.
	// Zero means 30 s. It must not exceed [Capabilities.MaxLease].
	Lease time.Duration
	// Slots is the most messages that this subscription may hold unsettled. The driver never takes more from the broker
	// than Receive calls have asked for, and a driver that must prefetch never prefetches more than Slots. Zero means 1.
	Slots int
}

// DefaultLease is the lease of a subscription that sets none.
const DefaultLease = 30 * time.Second

// Subscription takes messages from one queue. It is safe for concurrent use.
type Subscription interface {
	// Receive waits until at least one message is visible and returns up to max leases. It returns early with no leases and
	// ctx's error when ctx is done, and with [ErrClosed] after Close. An error that wraps [ErrUnavailable] is
	// temporary: call again, the driver reconnects by itself and paces the calls.
	Receive(ctx context.Context, max int) ([]*Lease, error)

	// Healthy returns nil while the subscription can deliver, else why it can't. Readiness hangs on it.
	Healthy() error

	// Close stops receiving and unblocks Receive. Leases already handed out stay valid and can be settled.
	Close() error
}

// Capabilities is what a broker can do. Zero durations and sizes mean that the broker has no limit of its own.
type Capabilities struct {
	// Name is the driver's name as configuration and metrics spell it, for example "embedded".
	Name string
	// MaxDelay is the longest Publication.Delay.
	MaxDelay time.Duration
	// MaxRetryDelay is the longest delay of a Retry. A broker may still cut a delay short: whoever needs the time kept
	// carries it elsewhere ([Envelope.NotBefore], the attempt ledger).
	MaxRetryDelay time.Duration
	// MaxLease is the longest time from receive to settlement, extensions included. [Lease.Ceiling] says when that is over.
	MaxLease time.Duration
	// MaxBody is the largest message in bytes, headers included where the broker counts them.
	MaxBody int
	// Ordered says that one subscription receives messages of one queue in the order in which they became visible.
	Ordered bool
	// FIFO says that messages of one [Publication.Group] are handed out in the order of their publishing, each one only once its
	// predecessor was acked: while a message is leased, hidden by a retry or lost, the rest of its group waits. Such a queue takes no
	// delay of a message's own (a Publication.Delay above zero is refused with [ErrDelayTooLong]) and drops a second publication
	// of one DedupID.
	FIFO bool
	// CountsAttempts says that [Lease.Attempts] is kept by the broker across redeliveries, including those after a crash.
	CountsAttempts bool
	// SingleHost says that all users of this broker must run on one machine.
	SingleHost bool
	// Depth names the fields of [Depth] that the broker knows.
	Depth DepthFields
}

// DepthFields is a set of fields of [Depth].
type DepthFields uint8

// The fields of [Depth].
const (
	DepthFieldReady DepthFields = 1 << iota
	DepthFieldDelayed
	DepthFieldInFlight
)

// Depth counts the messages of one queue. Counts may lag by a second.
type Depth struct {
	// Ready messages can be received now.
	Ready Count `json:"ready"`
	// Delayed messages become visible later: delayed publishes and retries.
	Delayed Count `json:"delayed"`
	// InFlight messages are leased.
	InFlight Count `json:"in_flight"`
}

// QueueInfo describes one queue.
type QueueInfo struct {
	Name  string `json:"name"`
	Depth Depth  `json:"depth"`
}
