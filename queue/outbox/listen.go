package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/internal/pause"
)

// A silent connection is asked after quiet whether it is still there.
const (
	quiet       = 30 * time.Second
	listenReply = 10 * time.Second
)

// listen wakes a loop at each notification, and connects again for as long as ctx lasts. Without it the relay polls.
func (r *Relay) listen(ctx context.Context) {
	for failures := 1; ; failures++ {
		err := r.session(ctx, func() { failures = 1 })
		if ctx.Err() != nil {
			return
		}
		if failures == 1 {
			r.cfg.Logger.WarnContext(ctx, "outbox relay hears no notifications: it polls until it is connected again",
				"schema", r.cfg.Schema, "poll", r.cfg.Poll, "error", err)
		}
		if !pause.For(ctx, growing(failures)) {
			return
		}
	}
}

// session listens on one connection until it fails.
func (r *Relay) session(ctx context.Context, ready func()) error {
	connecting, cancel := context.WithTimeout(ctx, listenReply)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, r.direct.Copy())
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing was written
	}()
	if _, err := conn.Exec(connecting, "LISTEN "+pgx.Identifier{channelOf(r.cfg.Schema)}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		r.notify() // also at the start: what committed before LISTEN was not announced to us
		if err := wait(ctx, conn); err != nil {
			return err
		}
	}
}

// wait returns at the next notification, or when the connection turns out to be dead.
func wait(ctx context.Context, conn *pgx.Conn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, quiet)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, listenReply)
		err = conn.Ping(asking)
		cancel()
		if err != nil {
			return err
		}
	}
}
