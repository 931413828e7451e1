// Package brokerdlq keeps dead letters in the broker's own dead-letter queues, where there is no store to share. It works on any
// [queue.Broker]: the dead-letter queue of a queue is the one that [queue.DLQ] names.
//
// Guarantees:
//
//   - A job is moved by a confirmed publish of the body and headers as they were received, plus one header, [HeaderDead], with what is known
//     of the failure. Where both are too large the metadata is cut, in the end left out: a move never fails for the sake of metadata.
//   - A message leaves a dead-letter queue only after it was confirmed elsewhere ([Queues.Replay], [Queues.Import]) or by request
//     ([Queues.Purge]). A crash in between doubles at most the chunk at hand, with the same job id, key and run.
//   - Looking ([Queues.Sample], dry runs) gives messages back as they were.
//   - A scan ends: each message is looked at once, what does not match is kept leased until the end, and what arrives after the start is
//     left for the next scan. At most [Config.MaxKept] messages are kept; a scan that would need more stops with [ErrTooMany].
//   - What the broker moved by itself, and what other producers sent, are entries too, of cause [dlq.CauseBroker].
//
// Without an index it cannot hold jobs of sick destinations, look up an entry without searching, count what matches, or know what was
// replayed before. [Queues.Import] moves messages into a store that can.
//
// A dead letter that was put twice, because a confirmation was lost, is there twice. A replay and an import take one and drop the copies
// that they meet.
package brokerdlq
