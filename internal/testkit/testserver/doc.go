// Package testserver gives tests the real servers that they talk to.
//
// What holds:
//
//   - [AMQP], [SQS] and [Postgres] return the address of a server that answered just now. A server that is missing fails the test
//     and says what to do; nothing is ever skipped. These servers are shared: a test uses names of its own and removes what it
//     made, and it never stops, blocks or reconfigures them.
//   - [StartRabbitMQ] and [PackageRabbitMQ] return a node that the test may stop, kill and starve. Its name, ports, data and
//     secret are its own, it is alone, and nobody else on the machine notices it. When the test's process ends, however it ends, no
//     process of the node is left; epmd, Erlang's name server, belongs to the machine and stays.
//   - [StartPostgres] returns a PostgreSQL cluster that the test may stop, kill and reconfigure, under the same terms. [PgBouncer] returns the URL of
//     a pooler of the test's own in transaction mode. Both run from installed programs, which `make services` sees to, and never in Docker.
//   - [StartProxy] returns a TCP proxy in this process that cuts, delays and swallows on demand. When the test is over, so are its
//     goroutines. (toxiproxy, tried first, left one to four goroutines behind in each round of cuts under load: they wait for ever
//     to send to a stage of the pipe that is gone.)
//
// The shared servers are started by `make services`, or named by [AMQPEnv], [SQSEnv] and [PostgresEnv].
package testserver
