package queue

import "strings"

const dlqSuffix = ".dlq"

// DLQ returns the name of the dead-letter queue that belongs to queue: the queue's own name and ".dlq". Brokers with a dead-letter
// mechanism of their own make it together with the queue, and move there what they give up themselves. It is a queue like any other,
// except that it has no dead-letter queue, and that a size limit which is only configured does not hold for it.
func DLQ(queue string) string { return queue + dlqSuffix }

// IsDLQ reports whether name is one that [DLQ] returns.
func IsDLQ(name string) bool { return strings.HasSuffix(name, dlqSuffix) }
