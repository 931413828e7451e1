package outbox

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/caisson-go/caisson/queue"
)

// Sender is a [Box] in one transaction. It looks like a broker to those who only publish, worker.Client above all. Like the transaction it
// is for one goroutine at a time.
type Sender struct {
	box     *Box
	tx      pgx.Tx
	ordered bool
}

// In returns what publishes in tx:
//
//	client, err := worker.NewClient(worker.ClientConfig{Broker: box.In(tx)})
func (b *Box) In(tx pgx.Tx) Sender { return Sender{box: b, tx: tx} }

// Ordered returns a Sender that takes the group of each publication, which is the destination of a worker.Client's job, for its ordering key.
func (s Sender) Ordered() Sender {
	s.ordered = true
	return s
}

// Capabilities are those of [Config.Capabilities], without a longest delay: the relay cuts a delay when it publishes.
func (s Sender) Capabilities(name string) queue.Capabilities {
	caps := queue.Capabilities{Name: "outbox"}
	if s.box.cfg.Capabilities != nil {
		caps = s.box.cfg.Capabilities(name)
	}
	caps.MaxDelay = 0
	return caps
}

// Publish writes pubs in the transaction, in one round trip. A nil Err means that the publication is part of the transaction, and an ID is
// that of its row. One that matches [ErrInvalid] was refused alone; after any other the transaction can only be rolled back.
func (s Sender) Publish(ctx context.Context, name string, pubs []queue.Publication) []queue.PublishResult {
	results := make([]queue.PublishResult, len(pubs))
	var jobs []Job
	var places []int
	for i, p := range pubs {
		job := Job{Queue: name, Publication: p}
		if s.ordered {
			job.OrderingKey = p.Group
		}
		if err := job.check(s.box.cfg.Capabilities); err != nil {
			results[i].Err = fmt.Errorf("outbox: %w", err)
			continue
		}
		jobs, places = append(jobs, job), append(places, i)
	}
	ids, err := s.box.Enqueue(ctx, s.tx, jobs...)
	for n, i := range places {
		if err != nil {
			results[i].Err = err
			continue
		}
		results[i].ID = strconv.FormatInt(ids[n], 10)
	}
	return results
}
