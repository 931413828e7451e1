package sqs

import (
	"fmt"
	"strings"

	"github.com/caisson-go/caisson/queue"
)

const (
	fifoSuffix = ".fifo"
	// SQS takes no dots but that of ".fifo", so DLQs are called otherwise there.
	dlqPhysical = "-dlq"
	maxName     = 80
)

// isFIFO reports whether the queue of that logical name is a FIFO queue, or the DLQ of one.
func isFIFO(name string) bool {
	if queue.IsDLQ(name) {
		name = strings.TrimSuffix(name, queue.DLQ(""))
	}
	return strings.HasSuffix(name, fifoSuffix)
}

// physical returns the name that SQS knows a queue by.
//
//	jobs           -> jobs
//	jobs.dlq       -> jobs-dlq
//	jobs.fifo      -> jobs.fifo
//	jobs.fifo.dlq  -> jobs-dlq.fifo
func physical(prefix, name string) (string, error) {
	base := strings.TrimSuffix(name, queue.DLQ(""))
	dlq := base != name
	base, fifo := strings.CutSuffix(base, fifoSuffix)
	switch {
	case base == "" || !plainName(base):
		return "", fmt.Errorf("queue name %q: SQS takes letters, digits, hyphens and underscores, and %s at the end of a FIFO queue", name, fifoSuffix)
	case strings.HasSuffix(base, dlqPhysical):
		return "", fmt.Errorf("queue name %q: names that end in %s are those of dead-letter queues, which are written %q here",
			name, dlqPhysical, queue.DLQ(strings.TrimSuffix(base, dlqPhysical)+suffixIf(fifo, fifoSuffix)))
	}
	full := prefix + base + suffixIf(dlq, dlqPhysical) + suffixIf(fifo, fifoSuffix)
	if len(full) > maxName {
		return "", fmt.Errorf("queue name %q: it is %d characters with prefix and suffix, SQS takes %d", name, len(full), maxName)
	}
	return full, nil
}

// logical is the reverse of physical. It returns false for names without the prefix.
func logical(prefix, full string) (string, bool) {
	base, ok := strings.CutPrefix(full, prefix)
	base, fifo := strings.CutSuffix(base, fifoSuffix)
	if !ok || base == "" {
		return "", false
	}
	if base, ok = strings.CutSuffix(base, dlqPhysical); ok {
		return queue.DLQ(base + suffixIf(fifo, fifoSuffix)), base != ""
	}
	return base + suffixIf(fifo, fifoSuffix), true
}

func suffixIf(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
