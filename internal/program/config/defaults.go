package config

import (
	"math"
	"strconv"
	"strings"

	"github.com/caisson-go/caisson/internal/webhookapi"
	"github.com/caisson-go/caisson/migrations"
	"github.com/caisson-go/caisson/pools"
	"github.com/caisson-go/caisson/pools/breaker"
	"github.com/caisson-go/caisson/pools/budget"
	"github.com/caisson-go/caisson/queue/rabbitmq"
	"github.com/caisson-go/caisson/queue/sqs"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/journal"
	"github.com/caisson-go/caisson/worker"
)

// fromCode returns the defaults that other packages have for what their Go configuration leaves out, by dotted key. Each stands there alone;
// tags give those that only programs have.
func fromCode() map[string]any {
	w := worker.Config{}.WithDefaults()
	b := budget.Config{}.WithDefaults()
	r := rabbitmq.Config{}.WithDefaults()
	q := sqs.Config{}.WithDefaults()
	j := journal.RecorderConfig{}.WithDefaults()
	defaults := map[string]any{
		"queues": worker.DefaultQueue, "concurrency": w.Concurrency, "lease": w.Lease, "stop.grace": *w.StopGrace, "stop.hard": *w.StopHard,
		"hold.after": *w.Hold.After, "hold.backlog": *w.Hold.Backlog, "dlq.retention": w.DeadLetterRetention, "idempotency.retention": w.KeyRetention,

		"destinations.slow_lane.over":         pools.SlowLaneConfig{}.WithDefaults().Over,
		"destinations.default.budget.form":    string(b.Form),
		"destinations.default.budget.floor":   *b.Floor,
		"destinations.default.budget.percent": int(math.Round(100 * b.Ratio)),

		"rabbitmq.prefix": r.Prefix, "rabbitmq.heartbeat": r.Heartbeat, "rabbitmq.consumer_timeout": *r.ConsumerTimeout,
		"rabbitmq.max_body": r.MaxBody, "rabbitmq.delivery_limit": r.DeliveryLimit, "rabbitmq.window": r.Window,
		"sqs.max_receive_count": q.MaxReceiveCount, "sqs.fifo_batch": q.FIFOBatch, "sqs.linger": *q.Linger,
		"postgres.schema": migrations.DefaultSchema,

		"webhook.default.timeout":     webhook.Timeouts{}.WithDefaults().Total,
		"webhook.default.concurrency": webhook.Endpoint{}.WithDefaults().Concurrency,
		"webhook.ports":               joined(webhook.GuardConfig{}.WithDefaults().Ports),
		"webhook.event_retention":     j.Events,
		"webhook.attempt_log":         j.Attempts,
		"webhook.max_event":           webhookapi.DefaultMaxEvent,
	}
	addBreaker(defaults, "destinations.default.breaker.", breaker.Config{})
	addBreaker(defaults, "webhook.breaker.", breaker.Webhook())
	return defaults
}

func addBreaker(defaults map[string]any, section string, c breaker.Config) {
	minimum := c.MinimumCalls // zero follows from the rest
	c = c.WithDefaults()
	for key, value := range map[string]any{
		"failure_percent": *c.FailurePercent, "slow_percent": *c.SlowPercent, "slow_after": *c.SlowAfter, "window": c.Window,
		"min_calls": minimum, "hung_after": *c.HungAfter, "open": c.OpenFor, "open_growth": c.OpenGrowth, "open_max": c.OpenMax, "probes": c.Probes,
		"probe_successes": c.ProbesToClose, "ramp": *c.Ramp,
	} {
		defaults[section+key] = value
	}
}

func joined(ports []uint16) string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port))
	}
	return strings.Join(texts, ",")
}

// adopt puts defaults into the leaves of nodes.
func adopt(nodes []*node, defaults map[string]any) []*node {
	walk(nodes, nil, func(path) []string { return nil }, func(p path, n *node) {
		switch value := defaults[p.String()].(type) {
		case nil:
		case string:
			n.leaf.def = value
		default:
			n.leaf.def = show(value)
		}
	})
	return nodes
}
