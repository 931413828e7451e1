package endpoints

import (
	"fmt"
	"time"

	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/worker"
)

// KindDisabled is the kind of jobs that tell a program that an endpoint was disabled, so that its owner hears of it. The payload is [Disabled].
// Register a handler for it, or leave [AutoDisablerConfig].Client nil.
const KindDisabled = "webhook.endpoint_disabled"

// Disabled is the payload of [KindDisabled], as JSON. It holds only what any process would say, so that a job which is enqueued twice is one.
type Disabled struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Reason is webhook.ReasonFailing or webhook.ReasonGone.
	Reason string `json:"reason"`
	// Since is when it was disabled, in whole seconds.
	Since time.Time `json:"since"`
}

// notice is the job for an endpoint that was disabled. Its id and key are the endpoint and the time: however often it is enqueued, it runs once.
func notice(e webhook.Endpoint, queue string) worker.NewJob {
	since := e.Since.UTC().Truncate(time.Second) // stores keep fractions of different length
	id := fmt.Sprintf("endpoint-disabled:%s:%d", e.ID, since.Unix())
	return worker.NewJob{
		Kind: KindDisabled, ID: id, Key: id, Queue: queue,
		Payload: Disabled{ID: e.ID, Tenant: e.Tenant, Reason: e.Reason, Since: since},
	}
}

// ours reports whether we disabled the endpoint, rather than an operator.
func ours(e webhook.Endpoint) bool {
	return e.State == webhook.StateDisabled && (e.Reason == webhook.ReasonFailing || e.Reason == webhook.ReasonGone)
}
