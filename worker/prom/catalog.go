package prom

import "github.com/prometheus/client_golang/prometheus"

// metric is one entry of the catalogue. docs/metrics.md has the same entries.
type metric struct {
	name, help string
	labels     []string
}

// What events tell.
var (
	metricReceived = metric{"caisson_messages_received_total", "Messages taken from a queue.", []string{"queue"}}
	metricSettled  = metric{
		"caisson_jobs_settled_total", "Deliveries by what happened and what was decided.",
		[]string{"queue", "kind", "outcome", "settlement"},
	}
	metricDeferred     = metric{"caisson_jobs_deferred_total", "Deliveries put back with no attempt spent.", []string{"kind", "reason"}}
	metricDead         = metric{"caisson_dead_letters_total", "Jobs that were given up.", []string{"queue", "kind", "cause"}}
	metricHeld         = metric{"caisson_jobs_held_total", "Jobs taken out of their queue until their destination recovers.", []string{"queue", "kind", "cause"}}
	metricReleased     = metric{"caisson_held_jobs_released_total", "Held jobs published again.", []string{"probe"}}
	metricSettleErrors = metric{"caisson_settlement_errors_total", "Settlements that broker or store did not take; the message comes again.", []string{"queue"}}
	metricHandle       = metric{"caisson_job_handle_seconds", "How long handlers ran.", []string{"kind"}}
	metricLatency      = metric{"caisson_job_latency_seconds", "From when a job was due to its success.", []string{"queue", "kind"}}
	metricLeaseLost    = metric{"caisson_leases_lost_total", "Messages that the broker took back from a running handler.", []string{"kind"}}
	metricClaimLost    = metric{"caisson_claims_lost_total", "Keys that another worker took over from a running handler.", []string{"kind"}}
	metricAbandoned    = metric{"caisson_handlers_abandoned", "Handlers that ignore their cancelled context; each holds a slot.", []string{"kind"}}
	metricTransitions  = metric{"caisson_breaker_transitions_total", "Transitions of breakers.", []string{"from", "to", "reason", "destination"}}
	metricPaused       = metric{"caisson_paused", "1 while leasing is paused because a store or broker is unavailable.", []string{"what"}}
	metricRemoved      = metric{"caisson_cleanup_removed_total", "Expired records removed.", []string{"what"}}
	metricCleanErrors  = metric{"caisson_cleanup_errors_total", "Clean-ups that failed.", []string{"what"}}
	metricCalls        = metric{"caisson_call_events_total", "What happened to the calls that handlers make through pools.Call.", []string{"dependency", "event"}}
)

// What a scrape finds.
var (
	metricReady        = metric{"caisson_worker_ready", "1 while the worker can take jobs.", nil}
	metricInFlight     = metric{"caisson_worker_leases", "Leases held.", nil}
	metricSlots        = metric{"caisson_worker_slots", "Jobs that may run at once.", []string{"queue"}}
	metricSlotsInUse   = metric{"caisson_worker_slots_in_use", "Slots that are taken.", []string{"queue"}}
	metricTimeout      = metric{"caisson_kind_timeout_seconds", "How long an attempt may run that starts now; the longest where several kinds share the label.", []string{"kind"}}
	metricPoolSize     = metric{"caisson_pool_size", "Permits of a kind's bulkhead, as many as there are now where it adapts.", []string{"kind"}}
	metricPoolInUse    = metric{"caisson_pool_in_use", "Permits that are taken.", []string{"kind"}}
	metricPoolWaiting  = metric{"caisson_pool_waiting", "Jobs that wait for a permit, each holding a slot.", []string{"kind"}}
	metricPoolRejected = metric{"caisson_pool_rejected_total", "Jobs that found neither a permit nor room to wait.", []string{"kind"}}
	metricDestinations = metric{"caisson_destinations", "Destinations remembered.", []string{"state"}}
	metricPressed      = metric{"caisson_destinations_pressed", "Destinations that get fewer calls than they might: slow, new, or limited by what they were seen to bear.", []string{"why"}}
	metricLaneSlots    = metric{"caisson_slow_lane_slots", "Calls to slow destinations that may run at once.", nil}
	metricLaneInUse    = metric{"caisson_slow_lane_in_use", "Calls to slow and to new destinations that run.", nil}
	metricBreakerState = metric{"caisson_breaker_state", "1 for the state that a named destination is in.", []string{"destination", "state"}}
	metricOpenSeconds  = metric{"caisson_breaker_open_seconds", "How long a destination has let no ordinary call through; the longest where several share the label.", []string{"destination"}}
	metricFlapping     = metric{"caisson_breakers_flapping", "Destinations whose breaker changed more than 3 times within 10 minutes.", nil}
	metricQueueDepth   = metric{"caisson_queue_depth", "Messages in a queue.", []string{"queue", "state"}}
	metricDLQDepth     = metric{"caisson_dlq_depth", "Dead letters that wait for an operator.", []string{"queue", "cause"}}
	metricHeldJobs     = metric{"caisson_held_jobs", "Jobs held until their destination recovers.", []string{"destination"}}
	metricStoreUp      = metric{"caisson_store_up", "1 if broker or store answered the last question of a scrape.", []string{"store"}}
	metricBuild        = metric{"caisson_build_info", "Always 1.", []string{"version", "revision", "go_version"}}
)

// Buckets, in seconds.
var (
	handleBuckets  = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	latencyBuckets = []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
)

func (m metric) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, m.labels)
}

func (m metric) gauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name, Help: m.help}, m.labels)
}

func (m metric) histogram(buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.name, Help: m.help, Buckets: buckets}, m.labels)
}

func (m metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.name, m.help, m.labels, nil) }
