#!/usr/bin/env bash
# The servers that the tests talk to: RabbitMQ, PostgreSQL and an SQS server; the programs of those that tests start themselves; and the
# interpreters of the receivers that tests run.
#
#   services.sh start   uses what already listens and starts the rest: by docker compose where a Docker engine runs, else from
#                       Debian's packages and npm, which it installs if it is root. What it starts goes on running. It also sees to the
#                       programs of PostgreSQL and PgBouncer, of which tests start instances of their own, and to Python and Node.js.
#   services.sh stop    ends what start started, and nothing else.
#
# A service whose variable is set (CAISSON_TEST_AMQP_URL, CAISSON_TEST_SQS_ENDPOINT, CAISSON_TEST_POSTGRES_URL) is left to its
# owner. SERVICES_AMQP_PORT, SERVICES_SQS_PORT and SERVICES_POSTGRES_PORT move the ports, SERVICES_DIR the data and logs.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in lib compose rabbitmq postgres sqs interpreters; do
	# shellcheck source=/dev/null
	. "$HERE/$part.sh"
done

# ensure FUNCTIONS SERVICE VARIABLE PORT: FUNCTIONS is the prefix of the functions and the name in compose.yaml.
ensure() {
	local name=$1 service=$2 variable=$3 port=$4
	if [ -n "${!variable:-}" ]; then
		say "$service" "left alone, $variable is set"
	elif "${name}_answers"; then
		say "$service" "uses what listens on $HOST:$port"
	elif listens "$port"; then
		# It may just be starting.
		if wait_for 30 "${name}_answers"; then
			say "$service" "uses what listens on $HOST:$port"
		else
			say "$service" "$HOST:$port accepts connections, but does not answer as it should: it hangs (RabbitMQ does when it is out of file handles), or something else listens there. Mend it, free the port, or set $variable" >&2
			return 1
		fi
	elif compose_works; then
		compose_start "$name" "$service" "${name}_answers"
	else
		"${name}_start"
	fi
}

start() {
	local status=0
	ensure rabbitmq RabbitMQ CAISSON_TEST_AMQP_URL "$AMQP_PORT" || status=1
	ensure postgres PostgreSQL CAISSON_TEST_POSTGRES_URL "$POSTGRES_PORT" || status=1
	ensure sqs SQS CAISSON_TEST_SQS_ENDPOINT "$SQS_PORT" || status=1
	postgres_programs || status=1
	interpreters || status=1
	return "$status"
}

stop() {
	sqs_stop
	rabbitmq_stop
	postgres_stop
	compose_stop
}

case ${1:-} in
start | stop) ;;
*)
	echo "usage: $0 start|stop" >&2
	exit 2
	;;
esac

mkdir -p "$STATE"
chmod 755 "$STATE"
# One at a time: two test runs at once must not both install, nor both start. Without flock (not on Linux) only compose is left,
# which looks after that itself.
exec 9>"$STATE/lock"
if have flock && ! flock -w 600 9; then
	echo "services: another start or stop has held $STATE/lock for ten minutes" >&2
	exit 1
fi
"$1"
