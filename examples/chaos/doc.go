// Command chaos makes a webhook endpoint sick in each of the usual ways and measures what the worker makes of it:
//
//	go run ./examples/chaos
//
// It takes a minute and a half, needs nothing but Go, and prints two parts as Markdown, which docs/chaos.md quotes.
//
// The first part has one endpoint for each way of being sick: hanging, refusing connections, answering 500, answering 429, flapping. The worker has
// its defaults for webhooks with every time divided by 60, so that an outage of 20 minutes lasts 20 seconds. It tells how many requests the
// endpoint got while it was sick, how long it took until the breaker opened, and how long after the repair it had recovered. Beside it is
// the same worker without breaker, throttling and retry budget.
//
// The second part repeats five well-known experiments on retries, breakers, throttles, jitter and budgets, with and without the mechanism, each
// time ten times as fast as they are usually told, on the real worker and the real sender: queue, claims, dead letters, signatures and HTTP.
//
// How to read it: rig.go is one worker with one endpoint, endpoint.go the endpoint, sick.go the first part, and outage.go, stall.go,
// throttle.go, jitter.go and budget.go the experiments.
package main
