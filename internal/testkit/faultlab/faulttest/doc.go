// Package faulttest tries the worker against everything that ends or goes away: its own processes, killed with SIGKILL, PostgreSQL below its
// claims and dead letters, RabbitMQ.
//
// It has tests only. They judge processes by the clock and run without the race detector; each has servers, queues and files of its own, and
// runs beside the others. SOAK=1 chooses their long forms.
package faulttest
