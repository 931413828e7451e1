package queue

import (
	"errors"
	"fmt"
)

// Errors of drivers, usually wrapped with what they were doing, and of [DecodeEnvelope]. Match them with errors.Is.
var (
	// ErrLeaseLost means that the lease's deadline passed or that the broker took the message back. Another worker may have
	// it now: the caller must not act on the message any more.
	ErrLeaseLost = errors.New("lease lost: its deadline passed or the broker took the message back")

	// ErrSettled means that the lease was already acked, retried or released by this process.
	ErrSettled = errors.New("lease already settled")

	// ErrClosed means that the broker or subscription was closed by this process.
	ErrClosed = errors.New("closed")

	// ErrUnavailable means that the broker cannot be reached or refuses work for now. The call may be repeated.
	ErrUnavailable = errors.New("broker unavailable")

	// ErrTooLarge means that a message exceeds the broker's limit. See [TooLargeError] for the numbers.
	ErrTooLarge = errors.New("message too large")

	// ErrDelayTooLong means that a delay exceeds [Capabilities.MaxDelay] or [Capabilities.MaxRetryDelay], or that the queue takes none.
	ErrDelayTooLong = errors.New("delay too long for this broker")

	// ErrQueueNotFound means that the queue does not exist.
	ErrQueueNotFound = errors.New("queue not found")

	// ErrNoEnvelope means that a message has no [HeaderEnvelope]: a foreign producer sent it.
	ErrNoEnvelope = errors.New("message has no " + HeaderEnvelope + " header")

	// ErrBadEnvelope means that the header is there but cannot be read one single way.
	ErrBadEnvelope = errors.New("bad envelope")
)

// TooLargeError tells how large a refused message was. It matches [ErrTooLarge].
type TooLargeError struct {
	// Size is the message's size in bytes as the broker counts it, headers included.
	Size int
	// Limit is the most that the broker takes.
	Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes (headers included) exceeds the broker's limit of %d bytes: shorten the payload or store it elsewhere and enqueue a reference", e.Size, e.Limit)
}

// Is reports that a TooLargeError is [ErrTooLarge].
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
