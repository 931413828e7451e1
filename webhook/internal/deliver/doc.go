// Package deliver makes the jobs that deliver events to endpoints, for everything below webhook that enqueues one.
//
// It promises that jobs of one event and endpoint have one id and one key, whoever makes them, so that copies are delivered once.
package deliver
