package config

import "time"

// RabbitMQ configures the broker rabbitmq.
type RabbitMQ struct {
	URLs            []SecretURL   `key:"urls" default:"amqp://guest:guest@127.0.0.1:5672/" doc:"Nodes of the broker, tried in turn: amqp:// or amqps://, with user, password and virtual host."`
	TLS             TLS           `key:"tls"`
	Name            string        `key:"name" doc:"Name of the connections, as the broker lists them. Unset: program, host and process id."`
	Prefix          string        `key:"prefix" doc:"Put before the name of every queue and exchange. It carries a version: a queue's arguments never change, so what needs others gets another prefix."`
	Heartbeat       time.Duration `key:"heartbeat" min:"1s" max:"5m" doc:"How often a connection shows that it is alive. One that does not is dead after two of them."`
	ConsumerTimeout time.Duration `key:"consumer_timeout" min:"0s" doc:"What consumer_timeout is set to in the broker: no job may run for longer than that less a tenth, at most a minute, its grace included. 0s: the broker has none."`
	MaxBody         int           `key:"max_body" min:"1024" max:"536870912" doc:"The most bytes of a payload. RabbitMQ 4 takes 16 MiB unless it was told otherwise, 3.x 128 MiB."`
	DeliveryLimit   int           `key:"delivery_limit" min:"20" max:"1000000" doc:"How often the broker delivers a message before it gives it up by itself. It stops jobs that kill every worker; max_attempts is another thing and much lower."`
	Window          int           `key:"window" min:"1" max:"4096" doc:"Messages published and not confirmed yet, at most."`
	Management      SecretURL     `key:"management" doc:"The management API, for example http://user:password@host:15672. Unset: only configured queues are listed, and messages stuck in dead-lettering are not seen."`
}

// TLS configures encrypted connections.
type TLS struct {
	CAFile     string `key:"ca_file" doc:"Certificates (PEM) that the broker's is checked against. Unset: those of the system."`
	CertFile   string `key:"cert_file" doc:"Client certificate (PEM). Goes with key_file."`
	KeyFile    string `key:"key_file" doc:"Its key (PEM)."`
	ServerName string `key:"server_name" doc:"The name that the broker's certificate must have. Unset: the URL's host."`
}

// SQS configures the broker sqs. Credentials come from the AWS SDK's own chain: environment, shared files, roles.
type SQS struct {
	Region          string        `key:"region" doc:"AWS region. Unset: what the SDK's chain finds, for example in AWS_REGION."`
	Endpoint        string        `key:"endpoint" doc:"URL of a server other than AWS, for tests and emulators."`
	Prefix          string        `key:"prefix" doc:"Put before the name of every queue. Names may have 80 characters in all, the -dlq of the dead-letter queue included."`
	AccountID       string        `key:"account_id" doc:"Account of the queues' owner, if it is another one."`
	Create          bool          `key:"create" default:"true" doc:"Make queues that are missing. false: whoever runs the account makes them, and a missing one is an error."`
	MaxReceiveCount int           `key:"max_receive_count" min:"10" max:"1000" doc:"Redrive policy of queues that are made here: how often SQS delivers a message before it gives it up by itself. Keep it far above max_attempts."`
	FIFOBatch       int           `key:"fifo_batch" min:"1" max:"10" doc:"Messages taken from a FIFO queue in one receive. Those of one group are still run one after the other, with the lease of all kept alive."`
	FairGroups      bool          `key:"fair_groups" default:"true" doc:"Tell standard queues the job's destination as its group, so that a busy tenant does not hold up the others."`
	Linger          time.Duration `key:"linger" min:"0s" max:"1s" doc:"How long a send, delete or change of visibility waits for others to share its request. 0s: not at all."`
}

// SQLite configures the store sqlite.
type SQLite struct {
	Path       string `key:"path" default:"./caisson.db" doc:"The store's file: claims, attempts and dead letters."`
	SingleHost bool   `key:"single_host" default:"false" doc:"Says that all workers of these queues run on this host, so that one file can hold the claims of all. Needed for sqlite beside a networked broker."`
}
