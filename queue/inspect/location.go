package inspect

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Finder is implemented by brokers that can look for one job's messages without taking anything from their queues. RabbitMQ and SQS cannot: they
// show a message only to whoever receives it.
type Finder interface {
	// Find looks in all queues for the messages of jobs whose id or key is one of texts, and returns at most [MaxFound]. It looks at no more
	// than limit messages, oldest first, and changes nothing.
	Find(ctx context.Context, texts []string, limit int) (Search, error)
}

// MaxFound is the most messages that one [Finder.Find] returns.
const MaxFound = 100

// Search is what a Find came to.
type Search struct {
	Locations []Location
	// Looked is how many messages were looked at.
	Looked int
	// Complete says that those were all, and that no more than MaxFound were found.
	Complete bool
	// Now is the broker's clock.
	Now time.Time
}

// Location is where one message is.
type Location struct {
	Queue string `json:"queue"`
	// ID is the broker's own.
	ID    string `json:"id"`
	State State  `json:"state"`
	// Due is when a delayed message becomes visible, when the lease of a leased one ends unless it is extended, and since when a ready one
	// could be received.
	Due time.Time `json:"due"`
	// Ahead is how many messages of the queue are received before a ready one; absent for others. Above 100,000 it is absent too.
	Ahead queue.Count `json:"ahead"`
	// Deliveries is how often it was handed over, and Attempts how many of these are counted as attempts.
	Deliveries int `json:"deliveries"`
	Attempts   int `json:"attempts"`
	// EnqueuedAt is when the broker took it.
	EnqueuedAt time.Time `json:"enqueued_at"`
	// Envelope of the message; without an ID if it has none that can be read.
	Envelope queue.Envelope `json:"-"`
}

// State says whether a message can be received.
type State string

// The states.
const (
	// StateReady: the next one to ask may get it.
	StateReady State = "ready"
	// StateDelayed: it becomes visible later.
	StateDelayed State = "delayed"
	// StateLeased: somebody has it.
	StateLeased State = "leased"
)
