package sqs

import (
	"context"
	"fmt"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// deferrals is how many receives beyond its attempts a job may well need: deferrals by visibility, stops, lost responses.
const deferrals = 100

// Inspect implements [inspect.Inspector].
func (b *Broker) Inspect(ctx context.Context, name string, use inspect.Use) ([]inspect.Finding, error) {
	q, err := b.find(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if err := q.load(ctx); err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	i := inspection{q: q, a: q.attributes(), use: use}
	if !i.a.known {
		i.add(inspect.SeverityWarning, "attributes cannot be read with these credentials", "grant sqs:GetQueueAttributes on "+q.full)
		return i.findings, nil
	}
	i.redrive(ctx)
	i.inFlight()
	i.retention()
	i.settings()
	return i.findings, nil
}

type inspection struct {
	q        *remote
	a        attributes
	use      inspect.Use
	findings []inspect.Finding
}

func (i *inspection) add(s inspect.Severity, what, remedy string) {
	i.findings = append(i.findings, inspect.Finding{Queue: i.q.name, Severity: s, What: what, Remedy: remedy})
}

// redrive judges when SQS itself would give up a message.
func (i *inspection) redrive(ctx context.Context) {
	if i.q.dlq {
		if i.a.redrive != nil {
			i.add(inspect.SeverityWarning, "a dead-letter queue has a redrive policy of its own: dead letters that are looked at often move on", "remove its RedrivePolicy")
		}
		return
	}
	if i.a.redrive == nil {
		i.add(inspect.SeverityWarning, "no redrive policy: a message that kills every worker before it can be judged comes again without end",
			fmt.Sprintf("set a RedrivePolicy with maxReceiveCount %d and a dead-letter queue", defaultMaxReceiveCount))
		return
	}
	most := i.a.redrive.max()
	want := i.use.MaxAttempts + deferrals
	switch {
	case i.use.MaxAttempts > 0 && most <= i.use.MaxAttempts:
		i.add(inspect.SeverityFault, fmt.Sprintf("maxReceiveCount is %d and jobs have up to %d attempts: SQS moves them to the dead-letter queue before their last attempt is judged",
			most, i.use.MaxAttempts), fmt.Sprintf("set maxReceiveCount to %d", defaultMaxReceiveCount))
	case most < want:
		i.add(inspect.SeverityWarning, fmt.Sprintf("maxReceiveCount is %d; with up to %d attempts and the deferrals and redeliveries beside them it should be at least %d, or SQS moves jobs that are merely waiting",
			most, i.use.MaxAttempts, want), fmt.Sprintf("set maxReceiveCount to %d", defaultMaxReceiveCount))
	}
	i.deadLetters(ctx)
}

// deadLetters compares the retention with that of the DLQ of ours, where it can be seen.
func (i *inspection) deadLetters(ctx context.Context) {
	dlq, err := i.q.b.find(ctx, queue.DLQ(i.q.name))
	if err == nil {
		err = dlq.load(ctx)
	}
	if err != nil {
		i.add(inspect.SeverityNote, fmt.Sprintf("dead-letter queue %q cannot be seen: %v", queue.DLQ(i.q.name), err), "")
		return
	}
	a := dlq.attributes()
	if !a.known {
		return
	}
	if a.arn != i.a.redrive.Target {
		i.add(inspect.SeverityNote, fmt.Sprintf("SQS moves what it gives up to %s, not to %s", i.a.redrive.Target, a.arn), "")
	}
	if a.retention <= i.a.retention && !i.q.fifo {
		i.add(inspect.SeverityWarning, fmt.Sprintf("the dead-letter queue keeps messages for %v and the queue itself for %v: a moved message keeps its age and may be gone at once",
			days(a.retention), days(i.a.retention)), fmt.Sprintf("set the MessageRetentionPeriod of %s to 1209600", dlq.full))
	}
}

func (i *inspection) inFlight() {
	share := i.a.share()
	what := fmt.Sprintf("%d of %d messages that may be in flight are", i.a.notVisible, inFlightQuota)
	switch {
	case share >= 0.9:
		i.add(inspect.SeverityFault, what+": beyond that SQS hands out nothing, without an error", "add workers, or spread the jobs over more queues")
	case share >= hideShare:
		i.add(inspect.SeverityWarning, what+": retried messages are put back as copies, which costs two more requests each", "add workers, or spread the jobs over more queues")
	}
}

func (i *inspection) retention() {
	if i.use.MaxAge > 0 && i.a.retention < i.use.MaxAge {
		i.add(inspect.SeverityFault, fmt.Sprintf("messages are dropped after %v and jobs may wait for %v", days(i.a.retention), days(i.use.MaxAge)),
			fmt.Sprintf("set the MessageRetentionPeriod of %s to more than %d", i.q.full, int(i.use.MaxAge/time.Second)))
	}
}

func (i *inspection) settings() {
	if i.a.delay > 0 {
		i.add(inspect.SeverityWarning, fmt.Sprintf("the queue delays every message by %v, also those that are to run at once: a delay of 0 cannot be asked for", i.a.delay),
			fmt.Sprintf("set the DelaySeconds of %s to 0", i.q.full))
	}
	if i.a.maxSize < defaultMaxSize {
		i.add(inspect.SeverityNote, fmt.Sprintf("messages may have %d bytes with their attributes; SQS allows %d", i.a.maxSize, defaultMaxSize),
			fmt.Sprintf("set the MaximumMessageSize of %s to %d", i.q.full, defaultMaxSize))
	}
	if i.use.LongestRun > maxVisibility {
		i.add(inspect.SeverityFault, fmt.Sprintf("jobs may run for %v and SQS takes a message back after %v", i.use.LongestRun, maxVisibility), "lower the kind's timeout")
	}
}

// days prints long times as people say them.
func days(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
