// Package api is the JSON API of webhook endpoints and events, as an [http.Handler] for the paths under /v1/.
//
// Guarantees:
//
//   - [Description], which the API serves itself, describes every route, and the tests hold each request and answer against it.
//   - A secret is shown once: in the answer to the request that made it. What may be secret besides (path and query of URLs, header values,
//     keys of TLS) can be written and never be read.
//   - A request is done whole or refused whole. What is not known is refused: unknown fields, fields given twice, parameters that a route does
//     not have. A refusal is a problem (RFC 9457) that names the field and the way out.
//   - A change that names the revision it was made for (If-Match) overwrites no other one.
//   - The payload of an event is kept byte for byte. Publishing it again under its id changes nothing.
//   - Every body is bounded before it is read. No page in a browser can send a request that changes something: cross-site requests are refused.
//
// It asks for no credentials: put it behind something that does.
package api
