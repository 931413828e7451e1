// Command billing is a worker to try things with, for docs/guide-dead-letters.md and docs/guide-idempotency.md: it sends invoices. Its mail server
// is down for as long as a file named mailserver.down is there, and answers nothing as long as one named mailserver.slow is. Each invoice is
// printed once it is sent.
package main
