package webhookapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/caisson-go/caisson/queue"
	"github.com/caisson-go/caisson/webhook"
	"github.com/caisson-go/caisson/webhook/endpoints"
	"github.com/caisson-go/caisson/webhook/journal"
)

// Problem is why a request was refused, as RFC 9457 has it.
type Problem struct {
	// Type names the class of problem; programs may tell problems apart by it.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request and the way out.
	Detail string `json:"detail,omitempty"`
	// Errors are the single faults where a field or parameter is wrong.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is one fault of a request.
type FieldError struct {
	// Field of the body, parameter of the query or header. Empty if it is about the whole.
	Field string `json:"field,omitempty"`
	// Detail says what is wrong with it and the way out.
	Detail string `json:"detail"`
}

const problemType = "urn:caisson:problem:"

func newProblem(status int, name, title, detail string) *Problem {
	return &Problem{Type: problemType + name, Title: title, Status: status, Detail: detail}
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Problems that are always the same.
var (
	crossSite = newProblem(http.StatusForbidden, "cross-site", "Cross-site request",
		"a page of another site has a browser send this: send it from a program, or from a page of this origin")
	noSuchPath  = newProblem(http.StatusNotFound, "no-such-path", "No such path", "GET /v1/openapi.yaml describes the paths that there are")
	wrongMethod = newProblem(http.StatusMethodNotAllowed, "wrong-method", "Method not allowed", "the header Allow names the methods of this path")
)

// invalid returns the problem of one field.
func invalid(field, detail string) *Problem { return invalidFields(FieldError{field, detail}) }

func invalidFields(faults ...FieldError) *Problem {
	p := newProblem(http.StatusUnprocessableEntity, "invalid", "Invalid request", "")
	p.Errors = faults
	var texts []string
	for _, f := range faults {
		if f.Field == "" || strings.HasPrefix(f.Detail, f.Field+" ") { // it begins with the field already
			texts = append(texts, f.Detail)
			continue
		}
		texts = append(texts, f.Field+": "+f.Detail)
	}
	p.Detail = strings.Join(texts, "\n")
	return p
}

// problemOf says what an error means to a caller. Errors that are not about the request are not shown: they are the operator's.
func problemOf(err error) *Problem {
	var p *Problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, webhook.ErrUnknownEndpoint):
		return newProblem(http.StatusNotFound, "unknown-endpoint", "No such endpoint", "there is no endpoint of that id in the registry: list them with GET /v1/endpoints; those of a configuration file are changed there")
	case errors.Is(err, endpoints.ErrExists):
		return newProblem(http.StatusConflict, "endpoint-exists", "Endpoint exists", "there is an endpoint of that id: change it with PATCH, or choose another id")
	case errors.Is(err, endpoints.ErrConflict):
		return newProblem(http.StatusPreconditionFailed, "changed-meanwhile", "Endpoint was changed meanwhile", "read it again, and repeat the change with its new ETag in If-Match")
	case errors.Is(err, webhook.ErrNoEvent):
		return newProblem(http.StatusNotFound, "unknown-event", "No such event", "it was not published for this tenant, or its retention has passed")
	case errors.Is(err, webhook.ErrEventConflict):
		return newProblem(http.StatusConflict, "event-conflict", "Event id is taken", "the id was published with another payload, type or content type: publish this one under an id of its own")
	case errors.Is(err, journal.ErrCursor):
		return invalid("after", "is no cursor of this list: use the next of the page before, with the same filters")
	case errors.Is(err, endpoints.ErrNoKey):
		return newProblem(http.StatusInternalServerError, "no-key", "Endpoint cannot be read", "it is sealed with a key that this worker does not have: add that to webhook.old_secret_keys")
	case errors.Is(err, endpoints.ErrInvalid):
		return faulty(err)
	case errors.Is(err, endpoints.ErrSecretInUse):
		return newProblem(http.StatusConflict, "secret-in-use", "Secret is in use", "another endpoint signs with this secret, so that one receiver could forge for the other: give each its own, or leave it out to have one made")
	case errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrQueueNotFound):
		return newProblem(http.StatusServiceUnavailable, "unavailable", "Broker unavailable", "the broker did not confirm everything: repeat the request, an event under the same id")
	case errors.Is(err, endpoints.ErrUnavailable), errors.Is(err, journal.ErrUnavailable):
		return newProblem(http.StatusServiceUnavailable, "unavailable", "Store unavailable", "the store does not answer: repeat the request later, an event under the same id")
	}
	return newProblem(http.StatusInternalServerError, "failed", "Request failed", "it is not the request's fault: the worker's log says why")
}

// write sends a problem.
func write(w http.ResponseWriter, p *Problem) {
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	send(w, p.Status, "application/problem+json", p)
}

// reply sends what was asked for.
func reply(w http.ResponseWriter, status int, body any) error {
	send(w, status, "application/json", body)
	return nil
}

func send(w http.ResponseWriter, status int, contentType string, body any) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // a caller that left gets no answer; every form here can be encoded
}
