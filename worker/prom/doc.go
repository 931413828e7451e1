// Package prom turns a worker's events and state into Prometheus metrics.
//
// Guarantees:
//
//   - The number of series is bounded, whatever jobs come in. Labels are queues, kinds, dependencies, the destinations that [Config]
//     names, and classes that the code lists. Ids, keys, URLs and error texts never become labels; what is not known counts as [Other].
//   - A scrape never hangs on a broker or store that does not answer: it leaves their metrics out after [Config.ScrapeTimeout] and says
//     so with caisson_store_up.
//   - What is not known is absent, never zero.
//   - Observing a settled job takes no lock and allocates nothing once its series exist.
//
// docs/metrics.md lists every metric, and a test keeps that list and this package the same. Alert rules are in deploy/prometheus, what to do
// about them in docs/runbook.md.
//
// Use: make an [Observer] with [New], give it to worker.Config.Observers, and [Observer.Attach] the worker that came out.
package prom
