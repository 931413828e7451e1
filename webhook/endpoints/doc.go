// Package endpoints keeps the registry of webhook endpoints.
//
// Guarantees:
//
//   - What may be secret of an endpoint (URL, header values, signing secrets, keys) is encrypted before it reaches a store, with a key that
//     the store never sees, and bound to the endpoint's id. It is shown by no error and no log.
//   - A change is refused whole or made whole. Two changes at once never overwrite each other unseen: the second hears of a conflict, or is made
//     on top of the first.
//   - Each process that runs a [Mirror] sees a change within two seconds while the store answers, and keeps working with what it last saw
//     while it does not.
//   - An endpoint that fails for the length of its backoff is disabled, and so is one that is gone: by one process of all, whose notice runs once.
//     One event that nobody can take disables no endpoint, and while most of the fleet fails at once none is.
//
// Make a [Registry] on a [Store] with a [Keyring]. Workers ask a [Mirror] of it, and tell an [AutoDisabler] of
// their calls.
package endpoints
