// Package webhook delivers jobs to HTTP endpoints that nobody of ours controls.
//
// Guarantees:
//
//   - The body on the wire is the job's payload, byte for byte, on every attempt, and the signature is made over those bytes.
//   - Each attempt is signed with its own timestamp. The webhook-id stays the same over retries, resends and replays, so that a receiver
//     can drop what it has already seen.
//   - No connection is opened to an address that is not public, unless an operator allowed it by CIDR. The address that is dialled is
//     checked, not the one that was looked up before, so that DNS rebinding gains nothing. Redirects are never followed.
//   - One attempt ends within its total timeout, the response body included, and reads at most 64 KiB of it. The status line
//     decides; what happens to the body afterwards changes nothing.
//   - What the receiver asks for with Retry-After is never undercut.
//   - Only outages count against an endpoint's breaker: a client error, a redirect, a throttle, a blocked address or our own stop does not.
//   - Secrets, custom header values, user info, paths and queries of URLs appear in no error and no log of this package. Where a receiver
//     echoes them as they were sent, they are taken out of what is kept.
//   - Publishing an event twice under one id delivers it once to each endpoint, for as long as idempotency keys are kept; an endpoint that does not
//     take it gets one series of attempts and is in the dead letters once.
//   - An endpoint that asks for order gets each event for the first time once the one before was delivered or given up, also over crashes. What is
//     sent again by hand (resends, replays of dead letters) waits in no ordered queue.
//   - After a 410 this process makes no further call to that URL of the endpoint, until it is enabled. A paused or disabled endpoint gets none.
//
// What it does not promise: exactly-once delivery. A receiver that worked but whose answer was lost gets the same webhook-id again.
//
// # Sending
//
// Fill a list of [Endpoint] values, check them with [NewStatic] (or bring an [Endpoints] port of your own), make a sender with [NewSender], and call [Sender.Register]. Producers
// enqueue with [NewDelivery]. The endpoint's id is the job's destination, exactly as it is, so that breaker, throttling, rate and concurrency
// are the endpoint's own: configure them with [Endpoint.DestinationConfig].
//
// # Publishing
//
// A [Publisher] hands an [Event] to all endpoints of its tenant that want its type. Package webhook/journal keeps the events, so that they can be
// sent again. Where endpoints ask for order, run a Dispatcher of package webhook/ordering beside the workers,
// make it their observer, and end it after them. Give one to every publisher, too: there it need not run. A publisher without one leaves out the endpoints that ask for order and
// no others, each time with an error that names them ([ErrNoOrdering]); the event is kept, so that recovering them brings it.
//
// Programs that are configured as the worker is need none of that: package app opens a publisher for a program that only publishes, and
// handlers have [PublisherFrom].
//
// To publish in the transaction of a business write, enqueue a job in it (package queue/outbox), whose handler publishes under an id made of the
// job's key. Nothing is published if the transaction rolls back, and what has committed is published, once to each endpoint, however often the job
// runs.
//
// # Signing
//
// Signatures follow Standard Webhooks 1.0.0 (https://www.standardwebhooks.com): the signed content is id, dot, timestamp, dot, body;
// "v1," is base64 HMAC-SHA256, "v1a," base64 ed25519. While keys rotate, every key that is still in its window signs. Receivers check with a [signature.Verifier],
// or with any Standard Webhooks library.
//
// # How to read it
//
// handler.go takes a job to its endpoint, client.go makes the calls, response.go turns what came back into what becomes of the job. publisher.go
// takes an event to its endpoints; package webhook/ordering sends them one after the other where an endpoint asks for it.
package webhook
