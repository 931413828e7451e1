// Command golang receives webhooks: it checks each delivery with a signature.Verifier before it does anything, drops what it has seen, and answers at
// once. docs/guide-webhooks.md quotes it, and the tests of examples/receivers run it:
//
//	WEBHOOK_SECRETS=whsec_... go run ./examples/receivers/golang 8001
package main
