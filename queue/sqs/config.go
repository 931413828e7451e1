package sqs

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/caisson-go/caisson/queue"
)

// Config tells which SQS to use and how. The zero value of each optional field means its default.
type Config struct {
	// AWS overrides what the SDK's default chain finds (environment, shared files, roles). Nil loads the chain.
	AWS *aws.Config
	// Region overrides the chain's. One of the two must name a region.
	Region string
	// Endpoint is the URL of a server other than AWS, for tests and emulators, without a user or password. Empty means AWS. An endpoint
	// that is not of AWS gets made-up credentials when the chain has none.
	Endpoint string
	// Prefix is put before each queue's name: letters, digits, hyphens and underscores.
	Prefix string
	// AccountID of the queues' owner, if it is another account. Such queues are neither made nor listed.
	AccountID string
	// NoCreate refuses to make queues that are missing: they are then made by whoever runs the account.
	NoCreate bool
	// MaxReceiveCount of the redrive policy of queues that are made here, 1 to 1000. It stops jobs that kill every worker and is no
	// number of attempts. Default 1000.
	MaxReceiveCount int
	// UnwrapSNS names queues whose messages are SNS notifications around the real message.
	UnwrapSNS []string
	// FIFOBatch is the most messages of one group taken in one receive from a FIFO queue, 1 to 10. They are handed out one after the
	// other. Default 1.
	FIFOBatch int
	// NoFairGroups leaves out the message group id that tells a standard queue which tenant a message belongs to.
	NoFairGroups bool
	// Linger is how long a send, delete or change of visibility waits for others to share its request. Nil means 5 ms; zero means
	// that it never waits. At most 1 s.
	Linger *time.Duration
	// Transport carries the requests. Nil means one made for SQS. For faults in tests and for measuring.
	Transport http.RoundTripper
	// Logger gets what an operator should read. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultMaxReceiveCount = 1000 // the most that SQS takes
	defaultLinger          = 5 * time.Millisecond
)

// WithDefaults fills in what zero means.
func (c Config) WithDefaults() Config {
	if c.MaxReceiveCount == 0 {
		c.MaxReceiveCount = defaultMaxReceiveCount
	}
	if c.FIFOBatch == 0 {
		c.FIFOBatch = 1
	}
	if c.Linger == nil {
		c.Linger = new(defaultLinger)
	}
	if c.Logger == nil {
		c.Logger = slog.Default() //nolint:sloglint // the documented default of a field
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.MaxReceiveCount < 1 || c.MaxReceiveCount > 1000:
		return fmt.Errorf("max receive count %d: use 1 to 1000", c.MaxReceiveCount)
	case c.FIFOBatch < 1 || c.FIFOBatch > maxBatch:
		return fmt.Errorf("FIFO batch %d: use 1 to %d", c.FIFOBatch, maxBatch)
	case *c.Linger < 0 || *c.Linger > time.Second:
		return fmt.Errorf("linger %v: use at most 1s, or 0 for none", *c.Linger)
	case !plainName(c.Prefix):
		return fmt.Errorf("queue prefix %q: use letters, digits, hyphens and underscores", c.Prefix)
	}
	return c.validateEndpoint()
}

func (c Config) validateEndpoint() error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the endpoint is no URL such as http://127.0.0.1:4566") // it is not shown: it may hold a secret
	case u.User != nil:
		return errors.New("the endpoint holds a user or password: SQS takes its credentials from the AWS environment, files or roles")
	}
	return nil
}

// ofAWS reports whether the endpoint belongs to AWS.
func (c Config) ofAWS() bool {
	if c.Endpoint == "" {
		return true
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return true
	}
	host := strings.ToLower(u.Hostname())
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".c2s.ic.gov", ".sc2s.sgov.gov"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// Capabilities tells what a broker with this configuration can do with the queue of that name, without connecting to it.
func (Config) Capabilities(name string) queue.Capabilities {
	c := queue.Capabilities{
		Name:     "sqs",
		MaxLease: maxVisibility,
		MaxBody:  sizeLimit(defaultMaxSize, queue.IsDLQ(name)),
		Depth:    queue.DepthFieldReady | queue.DepthFieldDelayed | queue.DepthFieldInFlight,
	}
	if isFIFO(name) {
		c.FIFO = true
		c.MaxRetryDelay = maxVisibility
		return c
	}
	c.CountsAttempts = true
	c.MaxDelay = maxDelay
	return c
}
