package outbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/internal/headers"
)

// Limits of what is enqueued. A broker's own are usually lower; [Config.Capabilities] has those checked too.
const (
	maxQueueName = 255
	maxText      = 1000 // of group, deduplication id and ordering key
	maxMessage   = 128 << 20
	maxDelay     = 100 * 365 * 24 * time.Hour
)

// Job is a message to publish to a queue once its transaction has committed.
type Job struct {
	// Queue to publish to. Required; at most 255 bytes of UTF-8 without NUL. It need not exist yet.
	Queue string
	// Publication is passed to the broker byte for byte. Delay counts from the call of Enqueue. Without a DedupID it gets one, which
	// stays the same however often the job is published.
	queue.Publication
	// OrderingKey has the jobs of one queue and key published one after the other. Empty means in no order. At most 1000 bytes.
	OrderingKey string
}

// ErrInvalid marks a job that was refused before anything was written. Match it with errors.Is.
var ErrInvalid = errors.New("invalid job")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

func (j *Job) check(caps func(string) queue.Capabilities) error {
	switch {
	case j.Queue == "":
		return invalid("queue is empty: name the queue to publish to")
	case len(j.Queue) > maxQueueName || !utf8.ValidString(j.Queue) || strings.ContainsRune(j.Queue, 0):
		return invalid("queue %.40q: must have at most %d bytes of UTF-8 without NUL", j.Queue, maxQueueName)
	case j.Delay > maxDelay:
		return invalid("delay %s: must be at most %s", j.Delay, maxDelay)
	}
	for _, f := range [...]struct{ name, text string }{{"group", j.Group}, {"dedup id", j.DedupID}, {"ordering key", j.OrderingKey}} {
		if len(f.text) > maxText {
			return invalid("%s of %d bytes: must have at most %d", f.name, len(f.text), maxText)
		}
	}
	limit := maxMessage
	if caps != nil {
		if broker := caps(j.Queue).MaxBody; broker > 0 {
			limit = min(limit, broker)
		}
	}
	size := len(j.Body)
	if size <= limit && limit == maxMessage { // brokers count headers in ways of their own
		for name, value := range j.Headers {
			size += len(name) + len(value)
		}
	}
	if size > limit {
		return fmt.Errorf("%w: %w", ErrInvalid, &queue.TooLargeError{Size: size, Limit: limit})
	}
	return nil
}

// shards is the number of rows of outbox_shards.
const shards = 64

// shardOf is the same for all programs and versions: jobs of one key that were enqueued by different ones meet in one shard.
func shardOf(queue, key string) int16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(queue))
	_, _ = h.Write([]byte{0}) // which no queue name holds
	_, _ = h.Write([]byte(key))
	return int16(h.Sum32() % shards)
}

// columns are jobs as arrays, for one INSERT.
type columns struct {
	shards                              []int16
	queues                              []string
	delays                              []int64 // microseconds
	keys, groups, dedups, heads, bodies [][]byte
}

func (c *columns) add(j *Job, ordered bool, place int16) {
	key := j.OrderingKey
	if key == "" && ordered {
		key = j.Group
	}
	if key != "" {
		place = shardOf(j.Queue, key)
	}
	dedup := j.DedupID
	if dedup == "" {
		dedup = rand.Text()
	}
	c.shards = append(c.shards, place)
	c.queues = append(c.queues, j.Queue)
	c.delays = append(c.delays, (max(j.Delay, 0) + time.Microsecond - 1).Microseconds())
	c.keys = append(c.keys, orNull(key))
	c.groups = append(c.groups, orNull(j.Group))
	c.dedups = append(c.dedups, []byte(dedup))
	c.heads = append(c.heads, headers.Encode(j.Headers))
	if len(j.Body) == 0 {
		c.bodies = append(c.bodies, nil)
	} else {
		c.bodies = append(c.bodies, j.Body)
	}
}

func orNull(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
