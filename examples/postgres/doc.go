// Command postgres is a worker whose effects happen exactly once: the handler writes an order and enqueues its receipt in one transaction, which
// the worker commits together with the job's claim. examples/postgres/README.md runs it.
package main
