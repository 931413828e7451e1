package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A relay that listens has two paces. While it is busy it looks again and again, and has nobody notify it. When it has found nothing for
// calm it arms: it asks for notifications and then waits for them, once it knows that each transaction has either notified or ended. A
// transaction reads the wish after it has got its number, so one that read it before the relay armed has a number below the one that the
// relay takes after arming. Until all below that have ended the relay goes on looking often.
const (
	shortPoll = 25 * time.Millisecond
	calm      = time.Second
	// busyStreak is how many cycles in a row must find something for a relay to be busy.
	busyStreak = 8
)

// pacing is safe for concurrent use.
type pacing struct {
	mu      sync.Mutex
	last    time.Time // when something was found
	told    bool      // transactions notify, as far as the relay knows
	armed   time.Time // by this relay, and by nobody disarmed since; else zero
	horizon int64     // of transactions that may not have notified
	settled bool      // they have ended
}

// scan reads the answer to sqlTempo, which a loop asks before it looks for jobs: what has ended is then seen.
func (t *pacing) scan(row pgx.Row) error {
	var told bool
	var ended int64
	if err := row.Scan(&told, &ended); err != nil {
		return err
	}
	t.observe(told)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = !t.armed.IsZero() && ended >= t.horizon
	return nil
}

// observe is told whether transactions notify.
func (t *pacing) observe(told bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told = told; !told {
		t.armed, t.settled = time.Time{}, false
	}
}

// busy is told that a loop has found something, streak times in a row, and says whether to disarm.
func (t *pacing) busy(streak int, now time.Time) (disarm bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = now
	if streak < busyStreak || !t.told {
		return false
	}
	t.told, t.armed, t.settled = false, time.Time{}, false
	return true
}

// idle says whether the relay arms now, and else after how long a loop that has found nothing looks again; zero means not before it is notified.
func (t *pacing) idle(now time.Time) (arm bool, poll time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.settled:
		return false, 0
	case !t.armed.IsZero(): // another's transaction that is open for long is not worth much
		return false, min(max(now.Sub(t.armed)/4, shortPoll), calm)
	}
	return now.Sub(t.last) >= calm, shortPoll
}

func (t *pacing) arm(now time.Time, horizon int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.armed, t.settled, t.horizon = true, now, false, horizon
}

func (t *pacing) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.armed.IsZero()
}

// arm has transactions notify from here on. It reports whether that worked; if not, the relay goes on looking often.
func (r *Relay) arm(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := r.cfg.Pool.Exec(ctx, sqlArm, r.sql.told); err != nil {
		return false
	}
	var horizon int64 // in a transaction of its own: setval takes a number before it sets the value
	if err := r.cfg.Pool.QueryRow(ctx, sqlHorizon).Scan(&horizon); err != nil {
		return false
	}
	r.pacing.arm(time.Now(), horizon)
	return true
}

// disarm ends the notifications. If it fails, they come and do no harm.
func (r *Relay) disarm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, _ = r.cfg.Pool.Exec(ctx, sqlDisarm, r.sql.told)
}

// renew keeps the notifications coming for a relay that waits for them, and has it look if another one has ended them.
func (r *Relay) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var told bool
	if err := r.cfg.Pool.QueryRow(ctx, r.sql.pacing).Scan(&told, nil); err != nil {
		return
	}
	r.pacing.observe(told)
	if r.pacing.waits() {
		_, _ = r.cfg.Pool.Exec(ctx, sqlArm, r.sql.told)
		return
	}
	r.notify()
}
