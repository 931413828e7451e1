// Package receivers holds the tests of the webhook receivers in golang, python and node, which docs/guide-webhooks.md quotes.
//
// Each receiver answers 204 to what was signed with one of its secrets within five minutes, 400 to headers that are missing or malformed, 401 to
// what does not verify, and 413 to what is too large. It says of each event once that it was received, however often it comes. Python and
// Node.js must be installed: the tests fail without them.
package receivers
