// Package brokerdlqtest is the suite for dead letters in a broker's own queues: [Run] runs it on any [queue.Broker].
//
// It assumes no more than the port promises: not that leases outlive their broker, that a message keeps its id, that queues are in order,
// or that counts are exact.
package brokerdlqtest
