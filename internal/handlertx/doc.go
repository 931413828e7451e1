// Package handlertx is how the transaction of an attempt gets from the worker to the stores: a handler's context has a [Source] under [Key].
// Handlers do not use it: they call TxFrom of their store.
package handlertx
