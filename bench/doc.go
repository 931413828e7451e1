// Command bench measures Caisson beside the bare engines below it, in one run, interleaved, so that a machine's mood hits both sides alike.
//
// Every figure is the median of several rounds; what is compared does the same durable work: the same file or the same kind of queue, the same
// batch sizes, the same number of goroutines. Run it with
//
//	make bench
//
// or a part of it with -only: embedded, rabbitmq and sqs compare the worker with bare loops over each broker; framework is its own CPU and
// allocations per job, measured on a broker that does nothing; breaker is what one costs, beside gobreaker and failsafe-go; postgres
// compares the worker with claims in PostgreSQL with River; webhooks compares deliveries with a bare net/http loop. keys, which runs only if it is named, writes and expires ten million keys.
//
// The brokers are found as the tests find them: CAISSON_TEST_AMQP_URL, CAISSON_TEST_SQS_ENDPOINT and
// CAISSON_TEST_POSTGRES_URL, else on this host. `make services` starts
// them. Each round has a queue of its own, which is deleted after it.
package main
