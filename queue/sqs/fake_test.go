package sqs_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/caisson-go/caisson/internal/testkit/sqstest"
	"github.com/caisson-go/caisson/queue/sqs"
)

// fakeConfig is cfg for a server in the process.
func fakeConfig(server http.RoundTripper, cfg sqs.Config) sqs.Config {
	cfg.AWS = &aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	cfg.Transport = server
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// cuttable is a transport whose requests under way can be cut off.
type cuttable struct {
	next http.RoundTripper

	mu      sync.Mutex
	serial  int
	cancels map[int]context.CancelFunc
}

func (c *cuttable) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	c.mu.Lock()
	if c.cancels == nil {
		c.cancels = map[int]context.CancelFunc{}
	}
	c.serial++
	serial := c.serial
	c.cancels[serial] = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, serial)
	}()
	resp, err := c.next.RoundTrip(req.WithContext(ctx))
	if ctx.Err() != nil && req.Context().Err() == nil {
		return nil, sqstest.ErrCut
	}
	return resp, err
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.cancels {
		cancel()
	}
}
