package inspect

// Gauges is implemented by brokers that have figures of their own to show beside [Depth].
type Gauges interface {
	// Gauges returns the figures as they are known now, without asking the broker. It is safe for concurrent use.
	Gauges() []Gauge
}

// Gauge is one figure. Metrics show it as caisson_broker_<Name>.
type Gauge struct {
	// Name in snake case, from a fixed set per driver.
	Name string
	// Help says what is counted, in one sentence without a full stop.
	Help string
	// Queue that it belongs to; empty if it concerns the whole broker.
	Queue string
	Value float64
}
