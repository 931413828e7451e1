// Command quickstart runs all of Caisson on one machine in under a minute, with nothing but Go:
//
//	go run ./examples/quickstart
//
// With -broker rabbitmq or -broker sqs the queue lives in a broker; claims and dead letters are then in a file beside it.
//
// It starts three webhook receivers (one healthy, one flaky, one dead) and a worker on the embedded queue, enqueues 329 real webhook bodies
// and as many jobs for a Go handler of its own, and shows what happens: deliveries, retries, a breaker that opens, jobs that are deferred and
// held, jobs that die. Then it repairs the dead receiver and replays the dead letters. The receivers verify every signature and body, and they
// alone count: the last line says what they saw.
//
// How to read it: main.go is the story, config.yaml.tmpl the worker's configuration, handler.go the handler of its own, receiver.go the other
// side.
package main
