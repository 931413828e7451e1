package rabbitmq

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-go/caisson/queue"
)

// Config tells where the broker is and how to use it. The zero value of each optional field means its default.
type Config struct {
	// URLs of the broker's nodes, amqp:// or amqps:// with credentials and virtual host. At least one is required; they are tried in turn.
	URLs []string
	// TLS is used for amqps:// URLs. Nil means the system's roots and no client certificate.
	TLS *tls.Config
	// Name of the connections, as the broker lists them. Default: the program's name, host and process id.
	Name string
	// Prefix of all queues and exchanges, 1 to 100 bytes. Default "cs1.". It carries a version, since the arguments of a queue never change.
	Prefix string
	// Heartbeat finds dead connections. Default 10 s, at least 1 s.
	Heartbeat time.Duration
	// ConsumerTimeout is what the broker's consumer_timeout is set to: a message that is held for longer has its channel closed. Leases end
	// before it. Nil means 30 min, which is RabbitMQ's; zero that the broker has none. At least 1 min.
	ConsumerTimeout *time.Duration
	// MaxBody is the most bytes of a message's body. More is refused at publish. Default 16 MiB, the limit of RabbitMQ 4.
	MaxBody int
	// DeliveryLimit is the x-delivery-limit of queues: how often the broker redelivers before it dead-letters a message itself. It
	// stops jobs that kill every worker and is no number of attempts. Default 1000.
	DeliveryLimit int
	// Window is the most messages published and not confirmed yet. Default 256, at most 4096.
	Window int
	// Management is the URL of the management API, with credentials. Empty if there is none: queues of others are then not listed, and
	// messages that are stuck in dead-lettering not seen.
	Management string
	// Logger gets what an operator should read. Default slog.Default().
	Logger *slog.Logger
}

const (
	driverName   = "rabbitmq"
	maxShortText = 255 // of names and routing keys on the wire
	maxPrefix    = 100
)

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = defaultName()
	}
	if c.Prefix == "" {
		c.Prefix = "cs1."
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 10 * time.Second
	}
	if c.ConsumerTimeout == nil {
		c.ConsumerTimeout = new(30 * time.Minute)
	}
	if c.MaxBody == 0 {
		c.MaxBody = 16 << 20
	}
	if c.DeliveryLimit == 0 {
		c.DeliveryLimit = 1000
	}
	if c.Window == 0 {
		c.Window = 256
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s@%s:%d", filepath.Base(os.Args[0]), host, os.Getpid())
}

// validate checks a Config that has its defaults, and reads its URLs.
func (c Config) validate() ([]address, error) {
	switch {
	case len(c.URLs) == 0:
		return nil, errors.New("no URL: name at least one of the broker's nodes, as in amqp://user:password@host:5672/vhost")
	case len(c.Prefix) > maxPrefix:
		return nil, fmt.Errorf("prefix of %d bytes: use at most %d", len(c.Prefix), maxPrefix)
	case c.Heartbeat < time.Second:
		return nil, fmt.Errorf("heartbeat %v: must be at least 1s", c.Heartbeat)
	case *c.ConsumerTimeout != 0 && *c.ConsumerTimeout < time.Minute:
		return nil, fmt.Errorf("consumer timeout %v: must be at least 1m, or 0 if the broker has none", *c.ConsumerTimeout)
	case c.MaxBody < 1:
		return nil, fmt.Errorf("max body %d: must be at least 1 byte", c.MaxBody)
	case c.DeliveryLimit < 1:
		return nil, fmt.Errorf("delivery limit %d: must be positive: without one RabbitMQ 3.10 loses a message at its first requeue", c.DeliveryLimit)
	case c.Window < 1 || c.Window > 4096:
		return nil, fmt.Errorf("window %d: must be between 1 and 4096 messages", c.Window)
	}
	if c.Management != "" {
		u, err := url.Parse(c.Management)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("management URL (not shown, it may hold a password): must be like http://user:password@host:15672")
		}
	}
	addresses := make([]address, len(c.URLs))
	for i, text := range c.URLs {
		a, err := parseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("URL %d of %d: %w", i+1, len(c.URLs), err)
		}
		addresses[i] = a
	}
	return addresses, nil
}

// maxLease is the longest time from receive to settlement, 0 for no limit. The broker looks at its consumer_timeout about once a minute, and
// not before it has passed; the margin is for the settlement.
func (c Config) maxLease() time.Duration {
	return *c.ConsumerTimeout - min(time.Minute, *c.ConsumerTimeout/10)
}

// Capabilities tells what a broker with c can do with the queue of that name, without connecting to it.
func (c Config) Capabilities(name string) queue.Capabilities {
	c = c.WithDefaults()
	can := queue.Capabilities{
		Name:           driverName,
		MaxLease:       c.maxLease(),
		MaxBody:        c.MaxBody,
		CountsAttempts: true,
		Depth:          queue.DepthFieldReady,
	}
	if queue.IsDLQ(name) {
		can.MaxBody = 0
	}
	return can
}
