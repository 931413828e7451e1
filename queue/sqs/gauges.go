package sqs

import "github.com/caisson-go/caisson/queue/inspect"

// Gauges implements [inspect.Gauges].
func (b *Broker) Gauges() []inspect.Gauge {
	list := []inspect.Gauge{
		{Name: "throttled", Help: "Requests and entries of requests that SQS throttled", Value: float64(b.throttles.Load())},
		{Name: "failed_calls", Help: "Requests and entries of requests that failed for reasons of network or server", Value: float64(b.failures.Load())},
	}
	for _, q := range b.list() {
		list = append(list,
			inspect.Gauge{Name: "polls_open", Help: "Receive requests under way", Queue: q.name, Value: float64(q.polls.Load())},
			inspect.Gauge{Name: "copies", Help: "Messages that were put back as a copy", Queue: q.name, Value: float64(q.copies.Load())},
			inspect.Gauge{Name: "hops", Help: "Receives of messages that were not due yet and were sent on", Queue: q.name, Value: float64(q.hops.Load())},
			inspect.Gauge{Name: "given_back", Help: "Messages that arrived when nobody wanted them any more", Queue: q.name, Value: float64(q.givenBack.Load())},
			inspect.Gauge{Name: "duplicates", Help: "Messages that SQS handed over again while this process worked on them", Queue: q.name, Value: float64(q.duplicates.Load())},
		)
		if a := q.attributes(); a.known {
			list = append(list, inspect.Gauge{
				Name: "in_flight_share", Help: "Share of the quota of 120,000 messages in flight that is used, hidden retries among them",
				Queue: q.name, Value: a.share(),
			})
		}
	}
	return list
}
