package sqs

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/caisson-go/caisson/internal/pause"
)

// backoff is the pause after the failure of that number, counted from 0: 50 ms doubling to 5 s, of which a random half.
func backoff(failure int) time.Duration {
	d := 5 * time.Second
	if failure < 7 {
		d = 50 * time.Millisecond << failure
	}
	return d/2 + rand.N(d/2)
}

// attempts is how often one call is sent at most, beside what callers repeat.
const attempts = 3

// repeat runs try until it succeeds, fails for good or has failed often enough. Each try has callTimeout.
func (b *Broker) repeat(ctx context.Context, try func(context.Context) error) error {
	for i := 0; ; i++ {
		err := once(ctx, try)
		if err == nil {
			return nil
		}
		if f := b.note(err); f != unavailable && f != throttled || i == attempts-1 || b.isClosing() || !pause.For(ctx, backoff(i)) {
			return err
		}
	}
}

// once runs try within callTimeout.
func once(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return try(ctx)
}
