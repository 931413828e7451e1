package webhook

import (
	"fmt"
	"maps"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/caisson-go/caisson/webhook/internal/deliver"
	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// KindDeliver is the kind of jobs that deliver one event to one endpoint. Its payload is the body, byte for byte.
const KindDeliver = deliver.Kind

const defaultContentType = "application/json"

// NewDelivery returns the job that delivers body to an endpoint, ready for [worker.Client.Enqueue].
//
// eventID becomes the webhook-id, by which the receiver drops doubles; printable ASCII without dots, at most 200 bytes. With it the job's key
// is the endpoint and the event, so that enqueuing the same event twice delivers it once. Empty means the job's id, which stays the same
// over retries and replays, but not over enqueuing twice.
//
// headers are the job's. content-type is sent to the receiver (default application/json); no other one is.
func NewDelivery(endpointID, eventID string, body []byte, headers map[string]string) worker.NewJob {
	job := worker.NewJob{Kind: KindDeliver, Payload: body, Destination: endpointID, Headers: maps.Clone(headers)}
	if eventID != "" {
		if job.Headers == nil {
			job.Headers = make(map[string]string, 1)
		}
		job.Headers[signature.HeaderID] = eventID
		job.Key = endpointID + ":" + eventID
	}
	return job
}

// Delivery is one event on its way to an endpoint.
type Delivery struct {
	// ID is the webhook-id.
	ID string
	// Body is what is signed and sent.
	Body []byte
	// ContentType of the body. Default the endpoint's own Content-Type header, else application/json.
	ContentType string
}

// deliveryOf reads a job. One that was not made by NewDelivery is fine, too: what it leaves out has a default.
func deliveryOf(job *worker.Job) (Delivery, error) {
	d := Delivery{ID: job.ID, Body: job.Payload}
	for name, value := range job.Headers {
		switch strings.ToLower(name) {
		case signature.HeaderID:
			d.ID = value
		case deliver.HeaderContentType:
			d.ContentType = value
		}
	}
	if err := signature.CheckID(d.ID); err != nil {
		return Delivery{}, fmt.Errorf("%w: set the job header %s", err, signature.HeaderID)
	}
	if !httpguts.ValidHeaderFieldValue(d.ContentType) {
		return Delivery{}, fmt.Errorf("job header %s %q: not a valid header value", deliver.HeaderContentType, d.ContentType)
	}
	return d, nil
}
