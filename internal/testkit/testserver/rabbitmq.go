package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// How long a node may take on a loaded machine; a quiet one needs 3 to 5 seconds to start and 2 to stop.
const (
	startTimeout = 4 * time.Minute
	stopTimeout  = 2 * time.Minute
	ctlTimeout   = 3 * time.Minute
)

// RabbitMQConfig is what a node may differ in.
type RabbitMQConfig struct {
	// Management starts the management API, see [RabbitMQ.Management]. It costs about two seconds at each start.
	Management bool
	// Conf are further lines of rabbitmq.conf, such as "consumer_timeout = 2000".
	Conf []string
}

// RabbitMQ is a node of the test's own: it may be stopped, killed and reconfigured. It listens on the loopback only, keeps its
// address and its data over restarts, and belongs to no cluster.
//
// Its methods belong to the test's own goroutine, because they fail the test.
type RabbitMQ struct {
	dir        string // data, logs and configuration
	port       int
	management int // 0 without
	host       host
	up         bool
	alarmed    bool
}

// host is where a node runs: a process of ours, or a container.
type host interface {
	// start begins to start the node. The node is ready when it answers.
	start(ctx context.Context) error
	// stop ends the node in order, and returns when it is gone.
	stop(ctx context.Context) error
	// kill ends it at once, and returns when it is gone.
	kill(ctx context.Context) error
	// alive says why the node cannot answer any more, or nil.
	alive(ctx context.Context) error
	// ctl runs rabbitmqctl and returns what it prints.
	ctl(ctx context.Context, args ...string) (string, error)
	// log returns what the node had to say.
	log(ctx context.Context) string
	// remove leaves nothing behind. The node is down.
	remove(ctx context.Context) error
}

// StartRabbitMQ starts a node of the test's own and removes it with the test.
func StartRabbitMQ(t testing.TB) *RabbitMQ {
	t.Helper()
	return StartRabbitMQWith(t, RabbitMQConfig{})
}

// StartRabbitMQWith is [StartRabbitMQ] with a configuration.
func StartRabbitMQWith(t testing.TB, cfg RabbitMQConfig) *RabbitMQ {
	t.Helper()
	r := newRabbitMQ(t, cfg)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the node's log ends with:\n%s", lastLines(r.host.log(context.WithoutCancel(t.Context())), 100))
		}
		if err := r.remove(); err != nil {
			t.Errorf("remove the RabbitMQ node: %v", err)
		}
	})
	r.Start(t)
	return r
}

func newRabbitMQ(t testing.TB, cfg RabbitMQConfig) *RabbitMQ {
	t.Helper()
	// Not t.TempDir: the node may outlive the test that started it, and its path has to be short.
	dir, err := os.MkdirTemp("", "caisson-rabbitmq-")
	if err != nil {
		t.Fatal(err)
	}
	r := &RabbitMQ{dir: dir, port: freePort(t)}
	if cfg.Management {
		r.management = freePort(t)
	}
	r.host, err = newHost(t, r, cfg.Conf)
	if err != nil {
		t.Fatal(errors.Join(err, os.RemoveAll(dir)))
	}
	return r
}

func (r *RabbitMQ) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if r.up {
		// What it holds is of no more use.
		err = r.host.kill(ctx)
		r.up = false
	}
	return errors.Join(err, r.host.remove(ctx), os.RemoveAll(r.dir))
}

// URL returns the node's AMQP URL.
func (r *RabbitMQ) URL() string { return "amqp://guest:guest@" + r.Addr() + "/" }

// Addr returns the node's host and port, as [StartProxy] wants them.
func (r *RabbitMQ) Addr() string { return loopback(r.port) }

// Management returns the URL of the management API, for guest with password guest; "" if the node runs without.
func (r *RabbitMQ) Management() string {
	if r.management == 0 {
		return ""
	}
	return "http://" + loopback(r.management)
}

// Start starts the node after [RabbitMQ.Stop] or [RabbitMQ.Kill] and returns when it answers. Queues may need a moment longer to
// elect their leaders.
func (r *RabbitMQ) Start(t testing.TB) {
	t.Helper()
	if r.up {
		t.Fatal("the RabbitMQ node runs already")
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := r.host.start(ctx); err != nil {
		t.Fatalf("start a RabbitMQ node: %v", err)
	}
	r.up = true
	if err := await(ctx, r, r.host); err != nil {
		t.Fatalf("the RabbitMQ node does not answer: %v", err)
	}
}

func (r *RabbitMQ) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := dialAMQP(ctx, r.URL())
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	if r.management == 0 {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Management()+"/api/overview", http.NoBody)
	if err != nil {
		return err
	}
	req.SetBasicAuth("guest", "guest")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the management API answers %s", resp.Status)
	}
	return nil
}

// Stop stops the node in order, as an operator does who restarts it. Its data stay.
func (r *RabbitMQ) Stop(t testing.TB) {
	t.Helper()
	r.end(t, r.host.stop)
}

// Kill kills the node's process (SIGKILL), as the kernel does when memory runs out. What was confirmed is on disk.
func (r *RabbitMQ) Kill(t testing.TB) {
	t.Helper()
	r.end(t, r.host.kill)
}

// Restart is [RabbitMQ.Stop] and [RabbitMQ.Start].
func (r *RabbitMQ) Restart(t testing.TB) {
	t.Helper()
	r.Stop(t)
	r.Start(t)
}

func (r *RabbitMQ) end(t testing.TB, how func(context.Context) error) {
	t.Helper()
	if !r.up {
		t.Fatal("the RabbitMQ node does not run")
	}
	ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
	defer cancel()
	if err := how(ctx); err != nil {
		t.Fatalf("end the RabbitMQ node: %v", err)
	}
	r.up, r.alarmed = false, false
}

// Ctl runs rabbitmqctl on the node and returns what it prints, without the headers. It takes about a second and a half.
func (r *RabbitMQ) Ctl(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ctlTimeout)
	defer cancel()
	out, err := r.host.ctl(ctx, append([]string{"--silent"}, args...)...)
	if err != nil {
		t.Fatalf("rabbitmqctl %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out)
}

// Connections returns how many AMQP connections the node has.
func (r *RabbitMQ) Connections(t testing.TB) int {
	t.Helper()
	return len(strings.Fields(r.Ctl(t, "list_connections", "pid")))
}

// MemoryAlarm raises the memory alarm, which blocks every connection that publishes, or ends it. It returns when the node says so.
// An alarm ends with the node's process too.
func (r *RabbitMQ) MemoryAlarm(t testing.TB, on bool) {
	t.Helper()
	watermark := "0.6"
	if on {
		watermark = "0.0" // nothing at all may be used
	}
	// One call that sets it and waits for the alarm: each start of rabbitmqctl costs a second and a half of CPU.
	const set = `ok = vm_memory_monitor:set_vm_memory_high_watermark(%s),
		Wait = fun W(0) -> false; W(N) -> case (rabbit_alarm:get_alarms() =/= []) of %v -> true; _ -> timer:sleep(50), W(N - 1) end end,
		Wait(600).`
	if got := r.Ctl(t, "eval", fmt.Sprintf(set, watermark, on)); got != "true" {
		t.Fatalf("the memory alarm is not %v although the watermark is %s: %s", on, watermark, got)
	}
	r.alarmed = on
}
