package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caisson-go/caisson/dlq/replay"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// limit is how long the whole story may take. Delays on RabbitMQ are a second at least, and a poll of SQS is a request.
const limit = 90 * time.Second

// maxOutage is how long the outage lasts for the sake of more than one dead letter.
const maxOutage = 6 * time.Second

func main() {
	var place target
	flag.StringVar(&place.dir, "dir", "", "keep queue file, configuration and worker log in this `directory`, made if missing; empty means a temporary one")
	flag.StringVar(&place.broker, "broker", "embedded", "`where` the queue lives: embedded, rabbitmq or sqs")
	flag.StringVar(&place.url, "url", "", "`address` of the broker; empty means amqp://guest:guest@127.0.0.1:5672/ for rabbitmq, http://127.0.0.1:4566 for sqs")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "quickstart: unknown argument %q: there are only flags, see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, place, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells the story on out. It returns an error unless everything that was enqueued arrived, once and intact.
func run(ctx context.Context, at target, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
	defer cancel()
	events, err := readEvents()
	if err != nil {
		return err
	}
	s, err := open(ctx, at, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	s.say("1. Three webhook receivers listen: healthy; flaky, which refuses every third request; dead, which cuts every connection.")
	s.say("2. %d real webhook bodies are enqueued for them in turn, and %d jobs for a Go handler of our own.", len(events), len(events))
	if err := s.enqueue(ctx, events); err != nil {
		return err
	}
	s.say("3. The worker works. What flaky refused is retried. The breaker of dead opens: its jobs wait, deferred and then held, and spend no")
	s.say("   attempt. Only those that were tried twice, at first or as probes, become dead letters. The others are not slowed down.")
	s.startWorker(ctx)
	if err := s.follow(ctx, s.outageIsPlain); err != nil {
		return err
	}
	s.say("4. The dead receiver is repaired, and its dead letters are replayed. The held jobs come back by themselves: a few as probes, then,")
	s.say("   with the breaker closed, faster and faster.")
	s.receivers[dead].repair()
	if err := s.follow(ctx, func() (bool, error) { return s.replayAndLook(ctx) }); err != nil {
		return err
	}
	s.say("5. The worker stops. The receivers say what they saw:")
	if err := s.stopWorker(); err != nil {
		return err
	}
	return s.result(ctx)
}

// enqueue gives each event to one receiver and to our own handler.
func (s *scene) enqueue(ctx context.Context, events []event) error {
	var jobs []worker.NewJob
	for i, e := range events {
		id := fmt.Sprintf("evt_%04d", i+1)
		r := s.receivers[moods[i%len(moods)]]
		r.expect(id, e.Payload)
		jobs = append(jobs, webhook.NewDelivery(r.Name, id, e.Payload, nil), countEvent.New(Seen{ID: id, Event: e.Name}))
	}
	s.total = len(events)
	for _, r := range s.client.EnqueueMany(ctx, jobs) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// outageIsPlain says whether everything that can arrive has, and the dead receiver's jobs show all they can: some dead, the others waiting.
// Held jobs take turns as probes, so that one seldom dies: after a few seconds one dead letter is enough.
func (s *scene) outageIsPlain() (bool, error) {
	for _, m := range []mood{healthy, flaky} {
		if c := s.receivers[m].count(); c.delivered < c.expected {
			return false, nil
		}
	}
	look, err := s.look(context.Background())
	enough := look.dead >= 3 || look.dead > 0 && time.Since(s.start) > maxOutage
	return enough && look.held > 0 && look.deferred > 0 && look.handled == s.total, err
}

// replayAndLook replays what is dead and says whether everything has arrived.
func (s *scene) replayAndLook(ctx context.Context) (bool, error) {
	replay, err := replay.New(replay.Config{Store: s.stack.Letters, Broker: s.stack.Broker})
	if err != nil {
		return false, err
	}
	report, err := replay.Run(ctx)
	s.replayed += report.Replayed
	if err != nil {
		return false, fmt.Errorf("replay: %w", err)
	}
	c := s.receivers[dead].count()
	return c.delivered == c.expected, nil
}

// result prints the last line, from the receivers' own counts, and returns an error if anything is amiss.
func (s *scene) result(ctx context.Context) error {
	var sum count
	for _, m := range moods {
		c := s.receivers[m].count()
		sum.expected += c.expected
		sum.delivered += c.delivered
		sum.duplicates += c.duplicates
		sum.corrupted += c.corrupted
	}
	look, err := s.look(ctx)
	if err != nil {
		return err
	}
	lost := sum.expected - sum.delivered + s.total - look.handled
	fmt.Fprintf(s.out, "delivered=%d dead=%d replayed=%d lost=%d duplicates=%d corrupted=%d\n",
		sum.delivered, look.dead, s.replayed, lost, sum.duplicates, sum.corrupted)
	if look.dead != 0 || lost != 0 || sum.duplicates != 0 || sum.corrupted != 0 || s.replayed == 0 {
		return errors.New("that is not what should have come out")
	}
	return nil
}
