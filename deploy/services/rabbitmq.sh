# shellcheck shell=bash
# RabbitMQ: a node of our own, started from Debian's binary. Sourced by services.sh.

# A broker answers the protocol header of AMQP 0-9-1 with a method frame, whose first byte is 1.
rabbitmq_answers() { [ "$(reply "$AMQP_PORT" 'AMQP\0\0\11\1' 1)" = 01 ]; }

# rabbitmq_server: the script behind Debian's wrapper, because the wrapper insists on root and on the system's one node.
rabbitmq_server() {
	if [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; then
		echo /usr/lib/rabbitmq/bin/rabbitmq-server
	else
		command -v rabbitmq-server
	fi
}

rabbitmq_start() {
	local server home user dist limits
	if ! rabbitmq_server >/dev/null; then
		if ! can_apt; then
			missing RabbitMQ "rabbitmq-server is missing, and $(why_no_apt)" "sudo apt-get install rabbitmq-server" CAISSON_TEST_AMQP_URL
			return 1
		fi
		say RabbitMQ "installing rabbitmq-server"
		apt_install rabbitmq-server || return 1
	fi
	server=$(rabbitmq_server)
	user=root
	! id rabbitmq >/dev/null 2>&1 || user=rabbitmq
	home=$STATE/rabbitmq-$AMQP_PORT
	dist=$((AMQP_PORT + 20000))
	[ "$dist" -lt 65536 ] || dist=$((AMQP_PORT - 20000))
	mkdir -p "$home"
	echo '[].' >"$home/enabled_plugins"
	echo "listeners.tcp.local = $HOST:$AMQP_PORT" >"$home/rabbitmq.conf"
	: >"$home/env.conf" # in place of the machine's own, which would rename the node
	! is_root || chown -R "$user" "$home"
	# It sets three file handles aside for each quorum queue: with the usual 1,024 it would stop answering at 309 queues. Erlang makes
	# tables of the limit's size, so it is not raised as far as it goes.
	# shellcheck disable=SC2016 # the inner shell expands them
	limits='n=$(ulimit -Hn); [ "$n" != unlimited ] && [ "$n" -lt 65536 ] || n=65536; ulimit -n "$n"; exec "$0"'
	background "rabbitmq-$AMQP_PORT" "$user" env \
		HOME="$home" \
		ERL_EPMD_ADDRESS="$HOST" \
		ERL_FLAGS="-kernel inet_dist_use_interface {127,0,0,1}" \
		RABBITMQ_NODENAME="caisson-$AMQP_PORT@localhost" \
		RABBITMQ_DIST_PORT="$dist" \
		RABBITMQ_CONF_ENV_FILE="$home/env.conf" \
		RABBITMQ_CONFIG_FILE="$home/rabbitmq.conf" \
		RABBITMQ_ADVANCED_CONFIG_FILE="$home/advanced.config" \
		RABBITMQ_ENABLED_PLUGINS_FILE="$home/enabled_plugins" \
		RABBITMQ_MNESIA_BASE="$home/data" \
		RABBITMQ_LOG_BASE="$home/log" \
		sh -c "$limits" "$server"
	wait_for 90 rabbitmq_answers || failed "rabbitmq-$AMQP_PORT" RabbitMQ || return 1
	say RabbitMQ "started on $HOST:$AMQP_PORT"
}

rabbitmq_stop() { end "rabbitmq-$AMQP_PORT" RabbitMQ; }
