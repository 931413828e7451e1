// Package signature signs webhook deliveries and verifies them at the receiver, after Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com). It needs the standard library only.
//
// Guarantees:
//
//   - What is signed is webhook-id, dot, timestamp, dot, and the body byte for byte: "v1," is base64 HMAC-SHA256, "v1a," base64 ed25519.
//   - A [Secret] never shows itself: only [Secret.Reveal] returns the key. No error holds a key.
//   - [Verifier.Verify] compares in constant time, and refuses timestamps further than [Tolerance] from the receiver's clock.
//
// A receiver makes one [Verifier], gives it each request's headers and raw body, and acts only if it returns nil. It sees a
// webhook-id again when the sender did not get its answer: remember the ids and act once.
package signature
