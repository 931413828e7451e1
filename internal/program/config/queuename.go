package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-go/caisson/queue"
)

const (
	// fifoSuffix ends the names of FIFO queues of SQS.
	fifoSuffix = ".fifo"
	// sqsDLQ ends the names of dead-letter queues in SQS, which takes no other dots than that of fifoSuffix.
	sqsDLQ = "-dlq"
	// sqsName is the most characters of a queue's name in SQS.
	sqsName = 80
)

var (
	queueName    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,80}$`)
	sqsQueueName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// CheckQueueName refuses names that the configuration could not name, so that no job lands in a queue that nobody can work.
func CheckQueueName(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("%q is no queue name: use 1 to 80 letters, digits, dots, underscores or dashes", name)
	}
	return nil
}

// CheckQueueName refuses names that the broker could not have, beside those that no configuration could name.
func (c *Config) CheckQueueName(name string) error {
	if err := CheckQueueName(name); err != nil {
		return err
	}
	if c.Networked() && queue.IsDLQ(name) {
		return fmt.Errorf("%q is the dead-letter queue of %q: see and replay what is in it with dlq-replay, no worker takes it and no job goes there",
			name, strings.TrimSuffix(name, queue.DLQ("")))
	}
	if c.Broker != BrokerSQS {
		return nil
	}
	plain := strings.TrimSuffix(name, fifoSuffix)
	if !sqsQueueName.MatchString(plain) {
		return fmt.Errorf("%q is no queue name for SQS: use letters, digits, underscores and dashes, and %s at the end of a FIFO queue", name, fifoSuffix)
	}
	if base, ok := strings.CutSuffix(plain, sqsDLQ); ok {
		return fmt.Errorf("%q is no queue name here: names that end in %s are those of dead-letter queues in SQS, which are written %q",
			name, sqsDLQ, queue.DLQ(base+strings.TrimPrefix(name, plain)))
	}
	if n := len(c.SQS.Prefix) + len(queue.DLQ(name)); n > sqsName {
		return fmt.Errorf("%q is too long for SQS: with sqs.prefix and the ending of its dead-letter queue it has %d characters, and %d are allowed", name, n, sqsName)
	}
	return nil
}

// FIFO reports whether the queue of that name keeps the order of its groups.
func (c *Config) FIFO(name string) bool {
	return c.Broker == BrokerSQS && strings.HasSuffix(strings.TrimSuffix(name, queue.DLQ("")), fifoSuffix)
}

// queue checks the settings of one queue.
func (v *validator) queue(q Queue) {
	fifo := v.c.FIFO(q.Name)
	switch {
	case q.OnDead != "" && q.OnDead != OnDeadContinue && q.OnDead != OnDeadBlock:
		v.problem("queues", "%s: on_dead %q is neither %s nor %s", q.Name, q.OnDead, OnDeadContinue, OnDeadBlock)
	case q.OnDead != "" && !fifo:
		v.problem("queues", "%s: on_dead belongs to FIFO queues (broker sqs, with a name that ends in %s): others have no order to keep", q.Name, fifoSuffix)
	}
	if queue.IsDLQ(q.Name) && v.c.DLQBackend() == DLQBroker {
		v.problem("queues", "%s: is a dead-letter queue, and what dies in it has nowhere to go: replay its messages (dlq-replay) instead of working them", q.Name)
	}
	if q.UnwrapSNS && v.c.Broker != BrokerSQS {
		v.problem("queues", "%s: unwrap_sns needs the broker sqs", q.Name)
	}
	if fifo && v.c.ClaimStore() == StoreNone {
		v.problem("queues", "%s: a FIFO queue needs a store, since SQS does not count the attempts of a job that waits in its group: %s", q.Name, v.wayToStore())
	}
	if q.OnDead == OnDeadBlock && v.c.DLQBackend() == DLQBroker {
		v.problem("queues", "%s: on_dead block needs dead letters in a store, where it is seen when one was replayed or purged: set dlq.backend to store", q.Name)
	}
}

// DefaultQueue is the queue of jobs that name none.
const DefaultQueue = "default"

// UsualQueue is where a job goes that names no queue: not where nobody works, if there is a choice.
func (c *Config) UsualQueue() string {
	for _, q := range c.Queues {
		if q.Name == DefaultQueue {
			return q.Name
		}
	}
	return c.Queues[0].Name
}
