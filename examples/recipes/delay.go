package recipes

import (
	"context"
	"time"

	"github.com/caisson-go/caisson/worker"
)

// Cart was left by its owner.
type Cart struct {
	ID string `json:"id"`
}

// Remind is the kind of job that reminds the owner.
var Remind = worker.Kind[Cart]{Name: "cart.remind"}

// RemindTomorrow enqueues a reminder that is due in a day, and worth nothing two days later.
func RemindTomorrow(ctx context.Context, client *worker.Client, id string) error {
	job := Remind.New(Cart{ID: id})
	job.Delay = 24 * time.Hour // or job.At, a time
	job.Deadline = time.Now().Add(72 * time.Hour)
	_, err := client.Enqueue(ctx, job)
	return err
}

// Reminder looks again before it acts: nobody takes a delayed job back.
type Reminder struct {
	Paid   func(ctx context.Context, cart string) (bool, error)
	Asleep func(time.Time) bool
	Mail   func(ctx context.Context, cart string) error
}

// Handle sends one reminder.
func (r *Reminder) Handle(ctx context.Context, c Cart) error {
	paid, err := r.Paid(ctx, c.ID)
	if err != nil || paid {
		return err
	}
	if r.Asleep(time.Now()) {
		return worker.Snooze(time.Hour, "it is night there") // spends no attempt
	}
	return r.Mail(ctx, c.ID)
}
