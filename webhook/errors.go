package webhook

import "errors"

// Errors to match with errors.Is.
var (
	// ErrUnknownEndpoint means that there is no endpoint with that id.
	ErrUnknownEndpoint = errors.New("unknown webhook endpoint")
	// ErrBlocked means that deliveries may not go to an endpoint's address. It says no more on purpose: whoever owns the endpoint must not learn
	// from it what exists inside.
	ErrBlocked = errors.New("webhook address is not allowed")
	// ErrInvalidEvent means that an event can never be published as it is.
	ErrInvalidEvent = errors.New("not a valid webhook event")
	// ErrEventConflict means that the id was published before with another body, type or content type.
	ErrEventConflict = errors.New("webhook event id was used for another event")
	// ErrNoEvent means that no event of that id is kept: it was not published, or its retention has passed.
	ErrNoEvent = errors.New("no such webhook event")
	// ErrNoOrdering means that an endpoint asks for order, and the publisher has no [Ordering]: all others got the event. Publish it again under
	// the same id by a publisher with one, or recover the endpoint, for as long as the event is kept.
	ErrNoOrdering = errors.New("the publisher has no Ordering: set PublisherConfig.Ordering, then publish again or recover the endpoint")
	// ErrNoPublisher means that a context has no publisher.
	ErrNoPublisher = errors.New("there is no webhook publisher in this context: handlers of a program of app.Main have one once there is a registry of endpoints, " +
		"which needs webhook.secret_key or webhook.secret_key_file, a store, and a webhook.registry that is not off")
)
