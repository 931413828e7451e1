package webhookapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-go/caisson/webhook"
)

// testTimeout bounds a test delivery: somebody waits for the answer, and the server writes it within 30 s.
const testTimeout = 20 * time.Second

// TestResult is what came back from a test delivery.
type TestResult struct {
	Delivered bool `json:"delivered"`
	// Event is the webhook-id that was sent.
	Event string `json:"event"`
	// Status is the HTTP status; 0 if no response came.
	Status int `json:"status"`
	// Phase is how far the call got, as [webhook.Phase] spells it.
	Phase    string        `json:"phase"`
	Duration time.Duration `json:"duration_ns"`
	// Excerpt is the beginning of the response as one cleaned line.
	Excerpt string `json:"excerpt,omitempty"`
	// Error is why no response came.
	Error string `json:"error,omitempty"`
}

// testPayload is the body of a test delivery where nobody gave one.
type testPayload struct {
	Type      string            `json:"type"`
	Timestamp time.Time         `json:"timestamp"`
	Data      map[string]string `json:"data"`
}

// Test makes one signed delivery to e within 20 s, through the guard and the client of sender. A nil payload is one that says that it is a test.
// The error says that no call could be made.
func Test(ctx context.Context, sender *webhook.Sender, e webhook.Endpoint, payload []byte) (TestResult, error) {
	if payload == nil {
		var err error
		payload, err = json.Marshal(testPayload{"webhook.test", time.Now().UTC().Truncate(time.Second), map[string]string{"endpoint": e.ID}})
		if err != nil {
			return TestResult{}, fmt.Errorf("encode the test payload: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	d := webhook.Delivery{ID: "test_" + rand.Text(), Body: payload}
	r, err := sender.Send(ctx, e, d)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), fmt.Sprintf("endpoint %q: ", e.ID))
		return TestResult{}, invalid(fieldOf(why), why+": change the endpoint, then test again")
	}
	text, reason := r.Shown(e)
	return TestResult{
		Delivered: r.Status >= 200 && r.Status < 300, Event: d.ID, Status: r.Status, Phase: r.Phase.String(), Duration: r.Duration,
		Excerpt: text, Error: reason,
	}, nil
}
