package deliver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/caisson-go/caisson/webhook/signature"
	"github.com/caisson-go/caisson/worker"
)

// Kind is the kind of the jobs.
const Kind = "webhook.deliver"

// DefaultTenant is the tenant of what names none.
const DefaultTenant = "default"

// Headers of the jobs.
const (
	// HeaderContentType is the one that is passed on to the receiver.
	HeaderContentType = "content-type"
	// HeaderTenant is whose event it is: the endpoint's id may have gone to another tenant since.
	HeaderTenant = "webhook-tenant"
	// HeaderOrdered marks jobs of ordered queues, so that nobody has to ask which endpoint wants order.
	HeaderOrdered = "webhook-line"
)

// Event is what a job carries.
type Event struct {
	ID, Tenant, ContentType string
	Body                    []byte
}

// New returns the job that delivers an event to an endpoint. Its id is made of both, see [ID]: copies share their attempts, and are one dead letter
// at most. It carries the tenant, so that an endpoint that is another tenant's by then does not get it.
func New(endpointID string, e Event) worker.NewJob {
	tenant := cmp.Or(e.Tenant, DefaultTenant)
	headers := map[string]string{signature.HeaderID: e.ID, HeaderTenant: tenant}
	if e.ContentType != "" {
		headers[HeaderContentType] = e.ContentType
	}
	return worker.NewJob{
		Kind: Kind, Payload: e.Body, Destination: endpointID, Headers: headers,
		ID: ID(tenant, endpointID, e.ID), Key: key(tenant, endpointID, e.ID),
	}
}

// maxJobID is the longest id of a job on the wire.
const maxJobID = 200

// key tells deliveries apart, whoever had the endpoint's id: neither that nor an event's has a dot.
func key(tenant, endpointID, eventID string) string {
	name := endpointID + ":" + eventID
	if tenant != "" && tenant != DefaultTenant {
		name += "." + tenant
	}
	return name
}

// ID is the id of the job: its key, or a hash of it where that is too long.
func ID(tenant, endpointID, eventID string) string {
	id := key(tenant, endpointID, eventID)
	if len(id) <= maxJobID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return endpointID + ":" + hex.EncodeToString(sum[:])
}
