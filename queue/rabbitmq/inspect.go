package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

var _ inspect.Inspector = (*Broker)(nil)

// inspection gathers what there is to say about one queue.
type inspection struct {
	b     *Broker
	queue string
	found []inspect.Finding
}

func (i *inspection) add(severity inspect.Severity, remedy, what string, args ...any) {
	i.found = append(i.found, inspect.Finding{Queue: i.queue, Severity: severity, What: fmt.Sprintf(what, args...), Remedy: remedy})
}

// Inspect implements [inspect.Inspector].
func (b *Broker) Inspect(ctx context.Context, name string, use inspect.Use) ([]inspect.Finding, error) {
	if b.isClosed() {
		return nil, queue.ErrClosed
	}
	i := &inspection{b: b, queue: name}
	i.settings(use)
	if why, _ := b.blocking(); why != "" {
		i.add(inspect.SeverityFault, "free memory or disk space on the broker: rabbitmq-diagnostics alarms", "%s", why)
	}
	for _, look := range []func(context.Context) error{i.main, i.deadLetters, i.shared, i.delays, i.managed} {
		if err := look(ctx); err != nil {
			return nil, fmt.Errorf("inspect queue %q: %w", name, err)
		}
	}
	return i.found, nil
}

// settings judges what can be judged without asking.
func (i *inspection) settings(use inspect.Use) {
	b := i.b
	if b.maxLease > 0 && use.LongestRun > b.maxLease {
		i.add(inspect.SeverityFault, fmt.Sprintf("set consumer_timeout of the broker to more than %v and tell the driver, or shorten the timeout", use.LongestRun),
			"a job may run for %v, but the broker's consumer_timeout is %v: past it the broker closes the channel and hands all its jobs out again",
			use.LongestRun, *b.cfg.ConsumerTimeout)
	}
	if use.MaxAttempts > 0 && use.MaxAttempts >= b.cfg.DeliveryLimit {
		i.add(inspect.SeverityWarning, "raise the delivery limit (under another prefix) well above the attempts, or lower the attempts",
			"jobs may have %d attempts, but the broker dead-letters a message itself after %d redeliveries", use.MaxAttempts, b.cfg.DeliveryLimit)
	}
}

// main looks at the queue itself.
func (i *inspection) main(ctx context.Context) error {
	t := i.b.topology
	q, err := i.b.passive(ctx, t.queue(i.queue))
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		i.add(inspect.SeverityFault, "start a worker on it, or create it", "queue %q is missing in the broker", t.queue(i.queue))
		return nil
	case err != nil:
		return err
	}
	if q.Messages > 0 && q.Consumers == 0 && !queue.IsDLQ(i.queue) {
		i.add(inspect.SeverityNote, "start a worker on it", "%d messages wait and nobody consumes", q.Messages)
	}
	args := t.keepArgs()
	if !queue.IsDLQ(i.queue) {
		args = t.mainArgs(i.queue)
	}
	return i.same(ctx, t.queue(i.queue), args)
}

// same checks that a queue that is there has the arguments that it should have.
func (i *inspection) same(ctx context.Context, full string, args amqp.Table) error {
	err := i.b.admin(ctx, func(ch *channel) error {
		d := declarer{ch: ch}
		d.queue(full, args) // of a queue that is there this changes nothing
		return d.err
	})
	var differs *DifferentError
	if errors.As(err, &differs) {
		i.add(inspect.SeverityFault, "use another prefix, or move its messages elsewhere and delete it", "%v", differs)
		return nil
	}
	return err
}

// deadLetters looks at the queue's dead-letter queue.
func (i *inspection) deadLetters(ctx context.Context) error {
	if queue.IsDLQ(i.queue) {
		return nil
	}
	full := i.b.topology.queue(queue.DLQ(i.queue))
	_, err := i.b.passive(ctx, full)
	if errors.Is(err, queue.ErrQueueNotFound) {
		i.add(inspect.SeverityFault, "start a worker on the queue, or create it again: that makes the dead-letter queue too",
			"dead-letter queue %q is missing: what the broker gives up stays stuck in the queue", full)
		return nil
	}
	if err != nil {
		return err
	}
	return i.same(ctx, full, i.b.topology.keepArgs())
}

// shared looks at where delays end.
func (i *inspection) shared(ctx context.Context) error {
	t := i.b.topology
	for name, kind := range map[string]string{t.deliver(): amqp.ExchangeDirect, t.unroutable(): amqp.ExchangeFanout} {
		err := i.b.admin(ctx, func(ch *channel) error { return ch.findExchange(name, kind) })
		if code(err) == amqp.NotFound {
			i.add(inspect.SeverityFault, "restart a worker: it declares what is missing", "exchange %q is missing: delayed messages stay in their delays", name)
		} else if err != nil {
			return err
		}
	}
	q, err := i.b.passive(ctx, t.unroutable())
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		i.add(inspect.SeverityFault, "restart a worker: it declares what is missing", "queue %q is missing: delayed messages whose queue is gone would be lost", t.unroutable())
	case err != nil:
		return err
	case q.Messages > 0:
		i.add(inspect.SeverityWarning, "look at their routing keys, make those queues again, and move the messages there",
			"%d messages of any queue wait in %q: their queue was deleted while they were delayed", q.Messages, t.unroutable())
	}
	return nil
}

// delays looks for delay queues that nobody needs any more.
func (i *inspection) delays(ctx context.Context) error {
	left, err := i.b.leftovers(ctx, true)
	if err != nil || len(left) == 0 {
		return err
	}
	const most = 5
	var names []string
	waiting := int64(0)
	for n, l := range left {
		if waiting += l.Messages; n < most {
			names = append(names, l.Name)
		}
	}
	if len(left) > most {
		names = append(names, fmt.Sprintf("... to %s", left[len(left)-1].Name))
	}
	i.add(inspect.SeverityWarning, "worker queues prune, once no older version runs: each costs the broker memory and file handles",
		"%d delay queues of an older version, which nobody needs any more, with %d messages: %s", len(left), waiting, strings.Join(names, ", "))
	return nil
}

// harmful are the keys of a policy that lose or hide jobs, or that replace what the driver set.
var harmful = []string{"message-ttl", "max-length", "max-length-bytes", "expires", "dead-letter-exchange", "dead-letter-routing-key", "delivery-limit"}

// managed says what only the management API knows.
func (i *inspection) managed(ctx context.Context) error {
	if i.b.management == nil {
		return nil
	}
	names := []string{i.queue}
	if !queue.IsDLQ(i.queue) {
		names = append(names, queue.DLQ(i.queue))
	}
	for _, name := range names {
		q, err := i.b.management.queue(ctx, i.b.topology.queue(name))
		if err != nil {
			i.add(inspect.SeverityWarning, "check the management URL, its user and its permissions",
				"messages stuck in dead-lettering and policies of %q cannot be seen: %v", name, err)
			return nil //nolint:nilerr // it is a finding
		}
		if q.Stuck > 0 {
			i.add(inspect.SeverityFault, "make the dead-letter queue again: create the queue, or start a worker on it",
				"%d messages are stuck on the way to the dead-letter queue", q.Stuck)
		}
		i.policy(name, q)
	}
	return nil
}

// policy judges what a policy does to a queue.
func (i *inspection) policy(name string, q managedQueue) {
	var bad []string
	for key := range q.Policy {
		if slices.Contains(harmful, key) {
			bad = append(bad, key)
		}
	}
	if slices.Sort(bad); len(bad) > 0 {
		i.add(inspect.SeverityFault, "take the queues with the driver's prefix out of the policy", "policy %q sets %s on %q, which can lose jobs",
			q.PolicyAs, strings.Join(bad, ", "), name)
	}
}
