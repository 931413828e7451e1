// Command bench measures Caisson beside the bare engines below it, in one run, interleaved, so that a machine's mood hits both sides alike.
//
// Every figure is the median of several rounds; what is compared does the same durable work: the same file, the same batch sizes, the same
// number of goroutines. Run it with
//
//	make bench
//
// It prints: enqueues per second; full cycles (enqueue to ack) per second of the raw engine, of the worker without claims and with claims, and
// their ratios; the framework's own CPU and allocations per job, measured on a broker that does nothing; and what a breaker costs, beside
// gobreaker and failsafe-go.
package main
