package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
	"github.com/caisson-go/caisson/schedule"
)

// ownPrefix returns a configuration with a prefix of the test's own, whose queues and exchanges are deleted at its end. The queue "q" is made.
func (r *rig) ownPrefix() Config {
	r.Helper()
	cfg := r.config()
	cfg.Prefix = "cstest-" + strings.TrimPrefix(r.name("x"), "test-x-") + "."
	topo := newTopology(cfg.WithDefaults())
	r.Cleanup(func() {
		names := append(topo.oldNames(), topo.deliver(), topo.unroutable(), topo.queue("q"), topo.queue("q.dlq"))
		for step := shortestStep; step <= longestStep; step *= 2 {
			names = append(names, topo.delay(step))
		}
		r.raw(func(ch *amqp.Channel) {
			for _, name := range names {
				if _, err := ch.QueueDelete(name, false, false, false); err != nil {
					r.Error(err)
				}
				if err := ch.ExchangeDelete(name, false, false); err != nil {
					r.Error(err)
				}
			}
		})
	})
	return cfg
}

// delayQueues returns which delay queues there are, of this version and of older ones.
func (r *rig) delayQueues(b *Broker) []string {
	r.Helper()
	names := b.topology.oldNames()
	for step := shortestStep; step <= longestStep; step *= 2 {
		names = append(names, b.topology.delay(step))
	}
	found, err := b.find(r.Context(), names)
	if err != nil {
		r.Fatal(err)
	}
	var there []string
	for _, name := range names {
		if _, ok := found[name]; ok {
			there = append(there, strings.TrimPrefix(name, b.topology.delayPrefix()))
		}
	}
	return there
}

// TestDelayQueues: few, made when they are needed, and in nobody's way.
func TestDelayQueues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*rig){
		"made when needed":        madeWhenNeeded,
		"few":                     fewDelayQueues,
		"several steps":           severalSteps,
		"of an older version":     olderDelayQueues,
		"nobody waits for them":   nobodyWaitsForDelays,
		"round trips of Open":     roundTripsOfOpen,
		"repaired":                delaysAreRepaired,
		"with other arguments":    changedDelays,
		"close while one is made": closeWhileDelayIsMade,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newRig(t))
		})
	}
}

func madeWhenNeeded(r *rig) {
	b := r.open(r.ownPrefix())
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	r.publish(b, "q", text("at once"))
	if got := r.delayQueues(b); len(got) > 0 {
		r.Errorf("delay queues %v before anything was delayed", got)
	}
	later := text("later")
	later.Delay = time.Minute
	r.publish(b, "q", text("at once"), later, text("at once"))
	if got := fmt.Sprint(r.delayQueues(b)); got != "[64000]" {
		r.Errorf("delay queues %v after a delay of a minute, want 64000", got)
	}
	if got := r.inspect(b, "q", inspect.Use{}); !strings.HasPrefix(got, "note: 3 messages wait") || strings.Contains(got, "\n") {
		r.Errorf("findings %q, want none beyond those of nobody consuming", got)
	}
}

// fewDelayQueues counts what default back-offs need, and what anything may need.
func fewDelayQueues(r *rig) {
	used := map[time.Duration]bool{}
	need := func(delay time.Duration) {
		_, steps := walk(delay, 0, func() time.Duration { return 5 * time.Millisecond })
		for _, step := range steps {
			used[step] = true
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	for _, text := range []string{"default", "queue", "webhook"} {
		policy, err := schedule.ParseBackoff(text)
		if err != nil {
			r.Fatal(err)
		}
		for attempt := range 20 {
			for range 50 {
				need(policy.Delay(attempt+1, policy.Longest(max(attempt, 1)), random))
			}
		}
	}
	if len(used) >= 15 {
		r.Errorf("default back-offs need %d delay queues, want fewer than 15", len(used))
	}
	for delay := time.Millisecond; delay < 1000*time.Hour; delay += delay/50 + 1 {
		need(delay)
	}
	if len(used) >= 40 {
		r.Errorf("all delays together need %d delay queues, want fewer than 40", len(used))
	}
}

func severalSteps(r *rig) {
	b := r.open(r.config())
	name := r.queue(b, "steps")
	sub := r.subscribe(b, name, 30*time.Second, 1)
	r.publish(b, name, queue.Publication{Message: queue.Message{Body: []byte("x"), Headers: map[string]string{"h": "v"}}})
	start := time.Now()
	if err := r.receive(sub).Retry(r.Context(), 5*time.Second, false); err != nil { // 4 s and 1 s
		r.Fatal(err)
	}
	l := r.receive(sub)
	if early := 5*time.Second - time.Since(start); early > 0 {
		r.Errorf("came back %v too early", early)
	}
	if l.Attempts != 2 || l.DeliveryCount != 2 || l.Headers["h"] != "v" || len(l.Headers) != 1 {
		r.Errorf("attempts %d, deliveries %d, headers %v: want 2, 2, and no trace of the steps", l.Attempts, l.DeliveryCount, l.Headers)
	}
	r.ack(l)
}

// olderDelayQueues takes over from a version that made a whole ladder: what is in it is worked, and what is empty can be removed.
func olderDelayQueues(r *rig) {
	cfg := r.ownPrefix()
	b := r.open(cfg)
	topo := b.topology
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	r.raw(func(ch *amqp.Channel) {
		for step, body := range map[time.Duration]string{
			1091 * time.Millisecond: "", 1189 * time.Millisecond: "ends soon", time.Second: "is in use", 65536 * time.Second: "", oldLongest: "waits",
		} {
			full := topo.delay(step)
			err := ch.ExchangeDeclare(full, "fanout", true, false, false, false, nil)
			if err == nil {
				_, err = ch.QueueDeclare(full, true, false, false, false, amqp.Table{
					"x-queue-type": "quorum", "x-message-ttl": step.Milliseconds(), "x-dead-letter-exchange": cfg.Prefix + "deliver",
					"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
				})
			}
			if err == nil {
				err = ch.QueueBind(full, "", full, false, nil)
			}
			if err == nil && body != "" {
				err = r.rawConfirmed(ch, full, topo.queue("q"), amqp.Publishing{Body: []byte(body), Headers: amqp.Table{"caisson-attempts": int64(2)}})
			}
			if err != nil {
				r.Fatal(err)
			}
		}
	})
	got := r.inspect(b, "q", inspect.Use{})
	for _, want := range []string{"warning: 4 delay queues of an older version", topo.delay(1091 * time.Millisecond), "worker queues prune"} {
		if !strings.Contains(got, want) && !strings.Contains(r.remedies(b, "q"), want) {
			r.Errorf("findings %q, want %q", got, want)
		}
	}
	sub := r.subscribe(b, "q", 30*time.Second, 2)
	for range 2 {
		l := r.receive(sub)
		if body := string(l.Body); body != "ends soon" && body != "is in use" || l.Attempts != 3 {
			r.Errorf("received %q with %d attempts", body, l.Attempts)
		}
		r.ack(l)
	}
	r.prunes(b, map[string]bool{"1091": true, "1189": true, "65536000": true, "86400000": false})
	if got := fmt.Sprint(r.delayQueues(b)); got != "[86400000 1000]" {
		r.Errorf("delay queues %v, want the one with a message and the one in use", got)
	}
	r.raw(func(ch *amqp.Channel) {
		d, ok, err := ch.Get(topo.delay(oldLongest), true)
		if err != nil || !ok || string(d.Body) != "waits" {
			r.Errorf("what waits in a delay of an older version is lost: %q, %v", d.Body, err)
		}
	})
	r.prunes(b, map[string]bool{"86400000": true})
	r.prunes(b, nil)
	if got := r.inspect(r.open(cfg), "q", inspect.Use{}); strings.Contains(got, "older version") {
		r.Errorf("findings after all is removed: %q", got)
	}
}

func (r *rig) remedies(b *Broker, name string) (all string) {
	found, err := b.Inspect(r.Context(), name, inspect.Use{})
	if err != nil {
		r.Fatal(err)
	}
	for _, f := range found {
		all += f.Remedy + "\n"
	}
	return all
}

// prunes wants the leftovers of those delays found, and removed or not.
func (r *rig) prunes(b *Broker, want map[string]bool) {
	r.Helper()
	left, err := b.Prune(r.Context(), 0)
	if err != nil {
		r.Fatal(err)
	}
	got := map[string]bool{}
	for _, l := range left {
		got[strings.TrimPrefix(l.Name, b.topology.delayPrefix())] = l.Removed
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("Prune: %v, want %v", got, want)
	}
}

// nobodyWaitsForDelays has the broker answer no declaration: what is not delayed goes out all the same.
func nobodyWaitsForDelays(r *rig) {
	p := newProxy(r, r.url)
	cfg := r.ownPrefix()
	cfg.URLs = []string{p.url(r.url)}
	b := r.open(cfg)
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	later := text("later")
	later.Delay = time.Second
	b.learn("q")
	thaw := p.freezeQuestions()
	ctx, cancel := context.WithTimeout(r.Context(), time.Second/2)
	defer cancel()
	results := b.Publish(ctx, "q", []queue.Publication{later, text("now"), later})
	if results[1].Err != nil {
		r.Errorf("what is not delayed waits for a delay: %v", results[1].Err)
	}
	for _, i := range []int{0, 2} {
		if !errors.Is(results[i].Err, context.DeadlineExceeded) {
			r.Errorf("delayed message %d: error %v, want that of the context", i, results[i].Err)
		}
	}
	thaw()
	r.eventually(func() error { return b.Publish(r.Context(), "q", []queue.Publication{later})[0].Err })
}

// closeWhileDelayIsMade: Close ends although the broker does not answer.
func closeWhileDelayIsMade(r *rig) {
	p := newProxy(r, r.url)
	cfg := r.ownPrefix()
	cfg.URLs = []string{p.url(r.url)}
	b := r.open(cfg)
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	defer p.freezeQuestions()()
	later := text("later")
	later.Delay = time.Second
	ctx, cancel := context.WithTimeout(r.Context(), time.Second/10)
	defer cancel()
	_ = b.Publish(ctx, "q", []queue.Publication{later})
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			r.Error(err)
		}
	case <-time.After(testTimeout):
		r.Error("Close does not end while a delay is declared")
	}
}

// roundTripsOfOpen counts: at 300 ms for each, ten take 3 s.
func roundTripsOfOpen(r *rig) {
	p := newProxy(r, r.url)
	cfg := r.config()
	cfg.URLs = []string{p.url(r.url)}
	r.open(cfg)
	p.each(func(l *proxyLink) {
		const connect = 1 // the kernel's
		if n := l.turns.Load() + connect; n >= 10 {
			r.Errorf("Open waits for %d answers on one connection, want fewer than 10", n)
		}
	})
}

// delaysAreRepaired deletes a delay under a running driver.
func delaysAreRepaired(r *rig) {
	b := r.open(r.ownPrefix())
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	sub := r.subscribe(b, "q", 30*time.Second, 1)
	delay := b.topology.delay(time.Second)
	for what, remove := range map[string]func(*amqp.Channel) error{
		"queue": func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(delay, false, false, false)
			return err
		},
		"exchange": func(ch *amqp.Channel) error { return ch.ExchangeDelete(delay, false, false) },
	} {
		pub := text(what)
		pub.Delay = time.Second
		r.eventually(func() error { return b.Publish(r.Context(), "q", []queue.Publication{pub})[0].Err })
		r.ack(r.receive(sub))
		r.raw(func(ch *amqp.Channel) {
			if err := remove(ch); err != nil {
				r.Fatal(err)
			}
		})
		first := b.Publish(r.Context(), "q", []queue.Publication{pub})[0].Err
		if !errors.Is(first, queue.ErrUnavailable) {
			r.Errorf("publish with the delay's %s deleted: error %v, want ErrUnavailable", what, first)
		}
		r.eventually(func() error { return b.Publish(r.Context(), "q", []queue.Publication{pub})[0].Err })
		r.ack(r.receive(sub))
	}
	if err := sub.Close(); err != nil { // before its queue goes: it would make it again
		r.Error(err)
	}
}

// changedDelays is what is said of a delay that was made with other arguments. It stops nothing else.
func changedDelays(r *rig) {
	b := r.open(r.ownPrefix())
	full := b.topology.delay(time.Second)
	r.raw(func(ch *amqp.Channel) {
		args := amqp.Table{"x-queue-type": "quorum", "x-message-ttl": int64(999)}
		if _, err := ch.QueueDeclare(full, true, false, false, false, args); err != nil {
			r.Fatal(err)
		}
	})
	if err := b.CreateQueue(r.Context(), "q"); err != nil {
		r.Fatal(err)
	}
	pub := text("x")
	pub.Delay = time.Second
	results := b.Publish(r.Context(), "q", []queue.Publication{pub, text("now")})
	var differs *DifferentError
	if err := results[0].Err; !errors.As(err, &differs) || differs.Name != full || errors.Is(err, queue.ErrUnavailable) {
		r.Errorf("publish into a changed delay: error %v, want a *DifferentError about %s", err, full)
	}
	if results[1].Err != nil {
		r.Errorf("publish beside it: %v", results[1].Err)
	}
}
