package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/signature"
)

// plan says what is sent to whom and when. Every process works it out for itself from the same few numbers.
type plan struct {
	Seed      uint64
	Endpoints int
	Rate      float64 // events per second
	For       time.Duration
	Sick      bool      // events for sick endpoints are sent as well
	Start     time.Time // when event 0 is due
	Port      int       // where the receivers listen

	Broker, URL, Prefix string
	Dir                 string
	Profile             string // file for the worker's CPU profile; empty for none
}

// class is how an endpoint behaves.
type class int

const (
	healthy    class = iota // answers in 5 to 80 ms
	hanging                 // takes the request and never answers
	refusing                // nobody listens
	failing                 // answers 500
	throttling              // answers 429 with Retry-After
	flapping                // answers 500 for every other flapTime
	classes
)

// String returns the class as the table shows it.
func (c class) String() string {
	return [...]string{"healthy", "hang", "refuse", "500", "429", "flap"}[c]
}

const (
	flapTime   = 20 * time.Second
	retryAfter = 10 * time.Second
	bodySize   = 1 << 10
	slots      = 512 // of the worker
)

// down says whether flapping endpoints are.
func down(at time.Time) bool { return at.Unix()/int64(flapTime/time.Second)%2 == 1 }

// class of endpoint i: 9 of each 100 are sick.
func (p plan) class(i int) class {
	switch i % 100 {
	case 0, 1, 2:
		return hanging
	case 3, 4:
		return refusing
	case 5, 6:
		return failing
	case 7:
		return throttling
	case 8:
		return flapping
	}
	return healthy
}

// latency of endpoint i, if it answers.
func (p plan) latency(i int) time.Duration {
	return 5*time.Millisecond + time.Duration(p.random(1, i).Int64N(int64(75*time.Millisecond)))
}

// random returns the random numbers that belong to i. what keeps those for one purpose from those for another.
func (p plan) random(what uint64, i int) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed+what<<32, uint64(i))) //nolint:gosec // i is not negative
}

func (p plan) events() int { return int(p.Rate * p.For.Seconds()) }

// endpoint that event n is for.
func (p plan) endpoint(n int) int { return p.random(0, n).IntN(p.Endpoints) }

// due is when event n is meant to be enqueued.
func (p plan) due(n int) time.Time {
	return p.Start.Add(time.Duration(float64(n) / p.Rate * float64(time.Second)))
}

// sent says whether event n is sent.
func (p plan) sent(n int) bool { return p.Sick || p.class(p.endpoint(n)) == healthy }

const (
	eventPrefix    = "evt_"
	endpointPrefix = "ep-"
)

func eventID(n int) string { return eventPrefix + strconv.Itoa(n) }

// eventNumber is the inverse of eventID.
func (p plan) eventNumber(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, eventPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && n < p.events() && eventID(n) == id
}

func endpointID(i int) string { return endpointPrefix + strconv.Itoa(i) }

// classOf returns the class of the endpoint with that id.
func (p plan) classOf(id string) class {
	i, err := strconv.Atoi(strings.TrimPrefix(id, endpointPrefix))
	if err != nil {
		return healthy
	}
	return p.class(i)
}

// key is the idempotency key of event n's delivery.
func (p plan) key(n int) string { return endpointID(p.endpoint(n)) + ":" + eventID(n) }

func (p plan) body(n int) []byte {
	head := fmt.Sprintf(`{"type":"order.paid","event":%q,"note":"`, eventID(n))
	const tail = `"}`
	return []byte(head + strings.Repeat("x", bodySize-len(head)-len(tail)) + tail)
}

// secret of endpoint i in its text form.
func (p plan) secret(i int) string {
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:8], p.Seed)
	binary.BigEndian.PutUint64(seed[8:], uint64(i)) //nolint:gosec // i is not negative
	key := sha256.Sum256(seed[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// Endpoint i has a loopback address of its own: 127.10.0.1 and so on.
const (
	firstNet = 10
	perNet   = 250
)

func address(i int) netip.Addr {
	third := i / perNet
	return netip.AddrFrom4([4]byte{127, byte(firstNet + third/256), byte(third % 256), byte(1 + i%perNet)})
}

// endpointAt is the inverse of address.
func endpointAt(a netip.Addr) int {
	b := a.Unmap().As4()
	return ((int(b[1])-firstNet)*256+int(b[2]))*perNet + int(b[3]) - 1
}

// webhooks lists the endpoints as the worker knows them.
func (p plan) webhooks() ([]webhook.Endpoint, error) {
	list := make([]webhook.Endpoint, p.Endpoints)
	for i := range list {
		port := p.Port
		if p.class(i) == refusing {
			port = closedPort
		}
		secret, err := signature.ParseSecret(p.secret(i))
		if err != nil {
			return nil, err
		}
		list[i] = webhook.Endpoint{
			ID: endpointID(i), URL: fmt.Sprintf("http://%s:%d/hook", address(i), port), AllowHTTP: true, Secrets: []signature.Secret{secret},
		}
	}
	return list, nil
}
