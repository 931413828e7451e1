package sqs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/internal/pause"
	"github.com/caisson-go/caisson/queue"
)

// answer is what a batch request came to: message ids of the entries that succeeded, by entry id, and what failed.
type answer struct {
	ok     map[string]string
	failed []types.BatchResultErrorEntry
}

var errNoAnswer = errors.New("the answer does not mention the entry")

// runBatch sends entries and repeats those that failed through no fault of ours. request sends what it is given; the entries' ids are their
// indices.
func (q *remote) runBatch(ctx context.Context, action string, entries []*entry, request func(context.Context, []*entry) (answer, error)) {
	for try := 0; ; try++ {
		entries = q.dropLate(entries, time.Now())
		if len(entries) == 0 {
			return
		}
		last := try == attempts-1 || q.b.isClosing() && try > 0
		var left []*entry
		var a answer
		err := once(ctx, func(ctx context.Context) (err error) {
			a, err = request(ctx, entries)
			return err
		})
		if err != nil {
			left = q.failedWhole(action, entries, err, last)
		} else {
			left = q.sortOut(action, entries, a, last)
		}
		if len(left) == 0 {
			return
		}
		pause.For(ctx, q.pauseAfter(try)) // when ctx is over, the next try says so
		entries = left
	}
}

func (q *remote) pauseAfter(try int) time.Duration {
	if q.b.isClosing() {
		return 10 * time.Millisecond
	}
	return backoff(try)
}

// dropLate ends entries whose lease is over: SQS might say yes to them and do nothing, or do it to another's lease.
func (q *remote) dropLate(entries []*entry, now time.Time) []*entry {
	live := entries[:0]
	for _, e := range entries {
		if !e.until.IsZero() && !now.Before(e.until) || e.handle != nil && e.handle.isLost() {
			e.finish("", stale, queue.ErrLeaseLost)
			continue
		}
		live = append(live, e)
	}
	return live
}

func (q *remote) failedWhole(action string, entries []*entry, err error, last bool) (left []*entry) {
	f := q.b.note(err)
	q.saw(f)
	if f == cancelled {
		f = unavailable // by Close
	}
	if !last && (f == unavailable || f == throttled) {
		return entries
	}
	explained := explainFault(f, err, action, q.name)
	for _, e := range entries {
		e.finish("", f, explained)
	}
	return nil
}

func (q *remote) sortOut(action string, entries []*entry, a answer, last bool) (left []*entry) {
	failed := make(map[string]types.BatchResultErrorEntry, len(a.failed))
	for _, f := range a.failed {
		failed[aws.ToString(f.Id)] = f
	}
	for i, e := range entries {
		key := strconv.Itoa(i)
		id, ok := a.ok[key]
		if ok {
			e.finish(id, 0, nil)
			continue
		}
		f, err := unavailable, errNoAnswer
		if entryFailed, ok := failed[key]; ok {
			f, err = entryError(entryFailed)
		}
		q.b.count(f)
		if !last && (f == unavailable || f == throttled) {
			left = append(left, e)
			continue
		}
		e.finish("", f, explainFault(f, err, action, q.name))
	}
	return left
}

func (q *remote) sendBatch(ctx context.Context, entries []*entry) {
	q.runBatch(ctx, "SendMessage", entries, func(ctx context.Context, entries []*entry) (answer, error) {
		in := &awssqs.SendMessageBatchInput{QueueUrl: aws.String(q.url), Entries: make([]types.SendMessageBatchRequestEntry, len(entries))}
		for i, e := range entries {
			in.Entries[i] = *e.send
			in.Entries[i].Id = aws.String(strconv.Itoa(i))
		}
		out, err := q.b.client.SendMessageBatch(ctx, in)
		if err != nil {
			return answer{}, err
		}
		a := answer{ok: make(map[string]string, len(out.Successful)), failed: out.Failed}
		for _, s := range out.Successful {
			a.ok[aws.ToString(s.Id)] = aws.ToString(s.MessageId)
		}
		return a, nil
	})
}

func (q *remote) deleteBatch(ctx context.Context, entries []*entry) {
	q.runBatch(ctx, "DeleteMessage", entries, func(ctx context.Context, entries []*entry) (answer, error) {
		in := &awssqs.DeleteMessageBatchInput{QueueUrl: aws.String(q.url), Entries: make([]types.DeleteMessageBatchRequestEntry, len(entries))}
		for i, e := range entries {
			in.Entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(e.newest())}
		}
		out, err := q.b.client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return answer{}, err
		}
		a := answer{ok: make(map[string]string, len(out.Successful)), failed: out.Failed}
		for _, s := range out.Successful {
			a.ok[aws.ToString(s.Id)] = ""
		}
		return a, nil
	})
}

func (q *remote) changeBatch(ctx context.Context, entries []*entry) {
	q.runBatch(ctx, "ChangeMessageVisibility", entries, func(ctx context.Context, entries []*entry) (answer, error) {
		in := &awssqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: aws.String(q.url), Entries: make([]types.ChangeMessageVisibilityBatchRequestEntry, len(entries)),
		}
		now := time.Now()
		for i, e := range entries {
			in.Entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(e.newest()),
				VisibilityTimeout: min(e.seconds, e.handle.left(now)), // some time may have passed since it was asked for
			}
		}
		out, err := q.b.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return answer{}, err
		}
		a := answer{ok: make(map[string]string, len(out.Successful)), failed: out.Failed}
		for _, s := range out.Successful {
			a.ok[aws.ToString(s.Id)] = ""
		}
		return a, nil
	})
}
