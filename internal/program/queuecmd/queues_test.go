package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-go/caisson/internal/program/cli"
	"github.com/caisson-go/caisson/internal/program/config"
	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/queue/inspect"
)

// remote is a broker that lists only what it was told, and judges queues by their names.
type remote struct {
	queue.Broker
	depths map[string]int64
	listed error
}

func (b remote) Queues(context.Context) ([]queue.QueueInfo, error) { return nil, b.listed }

func (b remote) Depth(_ context.Context, name string) (queue.Depth, error) {
	n, ok := b.depths[name]
	if !ok {
		return queue.Depth{}, queue.ErrQueueNotFound
	}
	return queue.Depth{Ready: queue.CountOf(n)}, nil
}

func (b remote) Inspect(_ context.Context, name string, use inspect.Use) ([]inspect.Finding, error) {
	switch {
	case name == "gone":
		return nil, queue.ErrQueueNotFound
	case use.MaxAttempts > 3:
		return []inspect.Finding{{Queue: name, Severity: inspect.Severity(name), What: "too few deliveries\x1b", Remedy: "more"}}, nil
	}
	return nil, nil
}

func load(t *testing.T, flags map[string]string) *config.Config {
	t.Helper()
	cfg, _, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A broker that cannot list its queues is asked for those that the configuration names, and for their dead letters.
func TestConfiguredQueuesAreListed(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{"broker": "rabbitmq", "queues": "b,a,new"})
	b := remote{depths: map[string]int64{"a": 1, "b": 2, "b.dlq": 3, "other": 9}}
	for _, b.listed = range []error{nil, fmt.Errorf("list queues: %w", errors.ErrUnsupported)} {
		found, err := findQueues(t.Context(), cfg, b)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		var names []string
		for _, q := range found {
			names, got[q.Name] = append(names, q.Name), q.Depth.Ready.N
		}
		if diff := cmp.Diff([]string{"a", "b", "b.dlq"}, names); diff != "" || got["b.dlq"] != 3 {
			t.Errorf("%v (-want +got):\n%s", got, diff)
		}
	}
	b.listed = queue.ErrUnavailable
	if _, err := findQueues(t.Context(), cfg, b); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{"broker": "rabbitmq"})
	needs := func() inspect.Use { return inspect.Use{MaxAttempts: 4} }
	for name, tt := range map[string]struct {
		broker queue.Broker
		queues []string
		use    func() inspect.Use
		fault  bool
		err    error
		want   string
	}{
		"nobody to ask": {struct{ queue.Broker }{}, []string{"a"}, needs, false, nil, "nothing to inspect"},
		"all is well":   {remote{}, []string{"a", "b"}, func() inspect.Use { return inspect.Use{} }, false, nil, "nothing found in a, b\n"},
		"warning":       {remote{}, []string{"warning"}, needs, false, nil, `warning  warning   too few deliveries\x1b  more`},
		"fault":         {remote{}, []string{"note", "fault"}, needs, true, nil, "fault  fault"},
		"missing":       {remote{}, []string{"gone", "warning"}, needs, false, queue.ErrQueueNotFound, "too few"},
	} {
		d, err := diagnose(t.Context(), tt.broker, tt.queues, tt.use)
		if d.faulty() != tt.fault || !errors.Is(err, tt.err) {
			t.Errorf("%s: faulty %v, %v", name, d.faulty(), err)
		}
		var out strings.Builder
		p := &program{Program: &cli.Program{Name: "worker", IO: cli.IO{Out: &out}}}
		if err := p.print(d, cfg, tt.queues); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: printed %q, want %q", name, out.String(), tt.want)
		}
		out.Reset()
		p.Settings.JSON = true
		if err := p.print(d, cfg, tt.queues); err != nil || !strings.Contains(out.String(), `"findings":[`) {
			t.Errorf("%s: printed %q, %v", name, out.String(), err)
		}
	}
}

// What is removed and what stays is told apart.
func TestPrune(t *testing.T) {
	t.Parallel()
	cfg := load(t, map[string]string{"broker": "rabbitmq"})
	found := []inspect.Leftover{{Name: "cs1.delay.1091", Removed: true}, {Name: "cs1.delay.86400000", Messages: 3}}
	for what, tt := range map[string]struct {
		found []inspect.Leftover
		json  bool
		want  string
	}{
		"nothing":    {nil, false, "nothing to remove: the rabbitmq broker"},
		"none, JSON": {nil, true, `{"queues":[]}`},
		"some":       {found, false, "cs1.delay.1091      0         removed\ncs1.delay.86400000  3         kept"},
		"some, JSON": {found, true, `{"name":"cs1.delay.86400000","messages":3,"removed":false}`},
	} {
		var out strings.Builder
		p := &program{Program: &cli.Program{Name: "worker", IO: cli.IO{Out: &out}}}
		p.Settings.JSON = tt.json
		if err := p.printPruned(&out, cfg, tt.found); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: printed %q, %v; want %q", what, out.String(), err, tt.want)
		}
	}
}
