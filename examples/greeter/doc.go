// Command greeter is the smallest worker: one kind, whose handler prints a greeting. examples/rabbitmq and examples/sqs run it on their
// brokers; without a configuration it works the embedded queue:
//
//	go run ./examples/greeter run
//	go run ./examples/greeter enqueue greet '{"name":"Ada"}'
package main
