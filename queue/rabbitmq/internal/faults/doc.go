// Package faults breaks what the RabbitMQ driver depends on, while a worker works and while nobody does: no job is lost, none is stuck, and
// nothing is left behind. It holds tests only, apart from those of the driver: they count the goroutines of the whole process, so they run
// one after the other, and without the race detector, beside the rest.
package faults
