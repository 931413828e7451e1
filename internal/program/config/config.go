package config

import (
	"time"

	"github.com/caisson-go/caisson/schedule"
)

// Config is the effective configuration. Tags give each field's key, bounds and description, and its default unless that belongs to another
// package (fromCode); docs/configuration.md is printed from them.
type Config struct {
	Broker       string          `key:"broker" default:"embedded" enum:"embedded,rabbitmq,sqs" doc:"Where queues live. embedded is a file on this host."`
	Embedded     Embedded        `key:"embedded"`
	RabbitMQ     RabbitMQ        `key:"rabbitmq"`
	SQS          SQS             `key:"sqs"`
	Store        string          `key:"store" default:"auto" enum:"auto,none,sqlite,postgres" doc:"Where claims and attempts are kept, and dead letters with them. auto: postgres where postgres.url is set, else in the embedded queue's own file, or nowhere (none) with a networked broker. Without a store no kind has idempotency keys and no job is held. postgres serves any number of hosts."`
	Postgres     Postgres        `key:"postgres"`
	SQLite       SQLite          `key:"sqlite"`
	Queues       []Queue         `key:"queues" doc:"Queues to work: a list of names, of name=weight, or of maps with name, weight, priority (0 to 2; under overload jobs of a higher number are put back first), default_kind, on_dead (FIFO queues: block keeps the rest of a group waiting behind a dead job, continue goes on) and unwrap_sns (sqs: messages are SNS notifications around the real one). A queue with weight 3 gets three times the slots of one with weight 1. With sqs, names that end in .fifo are FIFO queues."`
	Concurrency  int             `key:"concurrency" min:"1" max:"100000" doc:"Slots: how many jobs run at once."`
	Lease        time.Duration   `key:"lease" min:"1s" max:"12h" doc:"How long a received job stays exclusive between two heartbeats. A crashed worker's jobs come back after it."`
	Heartbeat    time.Duration   `key:"heartbeat" min:"10ms" doc:"How often leases and claims are extended. Unset: a third of the lease. It must be below half of it."`
	Stop         Stop            `key:"stop"`
	Kinds        map[string]Kind `key:"kinds" doc:"Settings of one kind of job. What is unset stays as the code registered it."`
	Destinations Destinations    `key:"destinations"`
	Hold         Hold            `key:"hold"`
	DLQ          DLQ             `key:"dlq"`
	Outbox       Outbox          `key:"outbox"`
	Idempotency  Idempotency     `key:"idempotency"`
	Admin        Admin           `key:"admin"`
	Log          Log             `key:"log"`
	Webhook      Webhook         `key:"webhook"`

	settings []Setting
}

// Embedded configures the embedded broker.
type Embedded struct {
	Path string `key:"path" default:"./caisson.db" doc:"The queue's file. Several processes on one host may share it."`
	Sync string `key:"sync" default:"mixed" enum:"mixed,full" doc:"mixed: wait for the disk when a job is accepted. full: at every change, so that a power cut cannot even repeat a finished job."`
}

// Queue is one queue to work.
type Queue struct {
	// Name of the queue.
	Name string `json:"name"`
	// Weight is the queue's share of slots among all weights; 1 if the configuration names none.
	Weight int `json:"weight"`
	// Priority is who is put back first under overload: 0 comes first.
	Priority int `json:"priority,omitempty"`
	// DefaultKind is the kind of messages without an envelope. Empty means that such messages are undecodable.
	DefaultKind string `json:"default_kind,omitempty"`
	// OnDead is what becomes of a FIFO group behind a job that died: OnDeadContinue or OnDeadBlock. Empty means continue.
	OnDead string `json:"on_dead,omitempty"`
	// UnwrapSNS takes the real message out of the SNS notification around it.
	UnwrapSNS bool `json:"unwrap_sns,omitempty"`
}

// What becomes of a FIFO group behind a job that died.
const (
	OnDeadContinue = "continue"
	OnDeadBlock    = "block"
)

// Stop bounds the end of a worker.
type Stop struct {
	Grace time.Duration `key:"grace" min:"0s" max:"24h" doc:"How long running jobs may finish after the first signal."`
	Hard  time.Duration `key:"hard" min:"0s" max:"1h" doc:"How long after the grace the process waits for cancelled handlers before it leaves them behind."`
}

// Kind configures one kind of job. Zero fields leave what the code registered.
type Kind struct {
	Timeout      time.Duration    `key:"timeout" min:"1ms" doc:"The longest that one attempt may run."`
	TimeoutFloor time.Duration    `key:"timeout_floor" min:"1ms" doc:"Lets the timeout follow how long attempts take: twice their 99th percentile, between this and timeout. Unset: it stays."`
	MaxAttempts  int              `key:"max_attempts" min:"1" max:"1000" doc:"Attempts in all, the first included."`
	Backoff      schedule.Backoff `key:"backoff" doc:"Delay between attempts: exponential(1s, 2, 1h), fixed(30s, 2m, 10m), constant(30s), each with a jitter as last argument if you like, or default, queue, webhook."`
	Bulkhead     Bulkhead         `key:"bulkhead"`
	Idempotency  string           `key:"idempotency" enum:"key,none" doc:"key: at most one completed run per key. none: no claim is taken."`
	MaxAge       time.Duration    `key:"max_age" min:"1s" doc:"Age past which a job is dead-lettered as expired. Not above idempotency.retention."`
	Destination  string           `key:"destination" doc:"The destination whose breaker and limits the kind shares."`
}

// Bulkhead bounds one kind. Unset fields leave what the code registered: a nil Waiting does, and 0 is none.
type Bulkhead struct {
	Size        int  `key:"size" min:"1" doc:"How many jobs of the kind run at once. The sum over all kinds must not exceed concurrency."`
	Waiting     *int `key:"waiting" min:"0" doc:"How many more may wait for a place with their lease kept alive."`
	AdaptiveMin int  `key:"adaptive_min" min:"1" doc:"Lets the size find itself between this and size, as destinations do."`
}

// Hold says when the jobs of a sick destination leave the queue.
type Hold struct {
	After   time.Duration `key:"after" min:"0s" doc:"A destination that has been open for so long has its jobs moved to the dead-letter store as held, until it recovers. 0s: never."`
	Backlog int           `key:"backlog" min:"0" doc:"How often one worker puts jobs of a destination back, since its breaker opened, before it holds further ones without waiting for hold.after. 0: only hold.after counts."`
}

// DLQ configures dead letters.
type DLQ struct {
	Backend   string        `key:"backend" default:"auto" enum:"auto,store,broker" doc:"Where dead letters live. store: in the embedded queue's file or the store. broker: in each queue's own dead-letter queue; no job is held then, since held jobs need a store. auto: store where there is one, else broker."`
	Retention time.Duration `key:"retention" min:"1m" doc:"How long a dead letter is kept after its last change."`
	Mirror    string        `key:"mirror" default:"none" enum:"none,broker" doc:"broker: each dead letter in the store also has a copy in its queue's own dead-letter queue, so that alarms on that go on working. The copy goes when the entry was replayed or purged. It needs a networked broker and dead letters in a store."`
	Sweep     time.Duration `key:"sweep" default:"1m" min:"0s" max:"24h" doc:"How often what a networked broker dead-lettered by itself (maxReceiveCount, delivery limit) is brought into the store. 0s: never; dlq-replay import does it once."`
}

// Idempotency configures the claim store.
type Idempotency struct {
	Retention time.Duration `key:"retention" min:"1m" doc:"How long a completed key is remembered."`
}

// Admin configures the admin server.
type Admin struct {
	Addr     string `key:"addr" default:"127.0.0.1:9464" doc:"Where /healthz, /readyz, /metrics and the API of webhooks listen; off for nowhere, in a file with quotes around it. An address beyond the loopback needs admin.user and admin.password."`
	User     string `key:"user" doc:"User name for basic authentication. Without it there is no API under /v1/, on the loopback neither: any program on this host, and any page in a browser on it, could use it. With it /metrics asks for it as well; /healthz and /readyz answer without, /readyz then leaving out why."`
	Password Secret `key:"password" doc:"Its password."`
}

// Log configures logging.
type Log struct {
	Level  string `key:"level" default:"info" enum:"debug,info,warn,error" doc:"The least level that is logged."`
	Format string `key:"format" default:"text" enum:"text,json" doc:"How log lines look."`
}
