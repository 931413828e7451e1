// Command fleet delivers webhooks to 5,000 endpoints of which 9 % are sick, and shows that the others do not notice:
//
//	go run ./examples/fleet
//
// It takes about five minutes and starts processes of its own: receivers, a sender and one worker. 3 % of the endpoints hang, 2 % refuse
// connections, 2 % answer 500, 1 % answer 429 with Retry-After, 1 % are down for every other 20 seconds, and the rest answer in 5 to 80 ms. 500
// events a second go to endpoints drawn at random, for two minutes, twice: first without those for sick endpoints, then with them.
//
// The sender is an open loop: each event has its time, and what is late goes out at once but is measured from when it was due, so that a slow
// system cannot slow its own load down. The receivers verify every signature and they alone count.
//
// At the end every event has to be accounted for: delivered, or waiting in the queue, held or dead. The last line says how much longer the 99th
// percentile of healthy endpoints took with the sick ones present, and the exit code is 0 only if all bounds held (see bounds.go).
//
// With -broker rabbitmq the queue lives in RabbitMQ, and claims and dead letters in a file beside it.
//
// How to read it: main.go is the story, plan.go what is sent to whom and when, receiver.go, sender.go and worker.go the processes, account.go
// finds what was not delivered.
package main
