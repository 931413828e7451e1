package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// bareTransport has the connection settings of the webhook sender, without its guard.
func bareTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext: dialer.DialContext, Protocols: protocols, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 15 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 5000, MaxIdleConnsPerHost: 3, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}
}

// bareHooks posts the bodies from as many goroutines as the worker has slots, and does nothing else; with sign it signs them as well.
func bareHooks(sign bool) func(ctx context.Context, h *hooks, done func()) error {
	return func(ctx context.Context, h *hooks, done func()) error {
		client := &http.Client{Transport: bareTransport(), Timeout: 26 * time.Second}
		defer client.CloseIdleConnections()
		jobs := make(chan int, h.slots)
		errs := make(chan error, h.slots)
		var wg sync.WaitGroup
		beginLap(ctx)
		for range h.slots {
			wg.Go(func() {
				for n := range jobs {
					if err := h.post(ctx, client, n, sign); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		err := feed(h.jobs, jobs, errs)
		wg.Wait()
		done()
		return err
	}
}

func feed(n int, jobs chan<- int, errs <-chan error) error {
	defer close(jobs)
	for i := range n {
		select {
		case jobs <- i:
		case err := <-errs:
			return err
		}
	}
	return nil
}

func (h *hooks) post(ctx context.Context, client *http.Client, n int, sign bool) error {
	e := h.endpoints[n%hookEndpoints]
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(h.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if sign {
		now := time.Now()
		id := "evt_" + strconv.Itoa(n)
		signed, err := signature.Sign(e.Secrets, id, now, h.body)
		if err != nil {
			return err
		}
		req.Header.Set(signature.HeaderID, id)
		req.Header.Set(signature.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
		req.Header.Set(signature.HeaderSignature, signed)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// memoryBroker hands out h.jobs messages, for one endpoint after the other, and forgets them.
type memoryBroker struct {
	nullBroker
	messages []queue.Message
	left     atomic.Int64
}

func newMemoryBroker(h *hooks) (*memoryBroker, error) {
	b := &memoryBroker{}
	b.left.Store(int64(h.jobs))
	for _, e := range h.endpoints {
		m, err := queue.NewMessage(queue.Envelope{
			ID: nextID(), Kind: webhook.KindDeliver, Destination: e.ID, EnqueuedAt: time.Now(), Headers: map[string]string{signature.HeaderID: "evt_1"},
		}, h.body)
		if err != nil {
			return nil, err
		}
		b.messages = append(b.messages, m)
	}
	return b, nil
}

// Subscribe implements [queue.Broker].
func (b *memoryBroker) Subscribe(context.Context, string, queue.SubscribeConfig) (queue.Subscription, error) {
	return b, nil
}

// Receive implements [queue.Subscription]. The worker has one receiver.
func (b *memoryBroker) Receive(ctx context.Context, limit int) ([]*queue.Lease, error) {
	left := int(b.left.Load())
	if left == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	leases := make([]*queue.Lease, min(limit, left))
	for i := range leases {
		leases[i] = queue.NewLease(b.messages[(left-i)%len(b.messages)], nullHandle{}, time.Now().Add(time.Minute))
		leases[i].Queue, leases[i].Attempts = queueName, 1
	}
	b.left.Add(-int64(len(leases)))
	return leases, nil
}

// failureCounter counts deliveries that did not succeed: there should be none.
type failureCounter struct{ n atomic.Int64 }

func (f *failureCounter) Observe(e worker.Event) {
	if s, ok := e.(*worker.Settled); ok && s.Outcome != worker.OutcomeSucceeded {
		f.n.Add(1)
	}
}

var errNoReceiver = errors.New("the receiver's process did not say where it listens")
