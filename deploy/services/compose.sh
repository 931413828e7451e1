# shellcheck shell=bash
# The same services from pinned images, where a Docker engine runs. Sourced by services.sh.

compose() {
	SERVICES_AMQP_PORT=$AMQP_PORT SERVICES_SQS_PORT=$SQS_PORT SERVICES_POSTGRES_PORT=$POSTGRES_PORT \
		docker compose --project-name caisson-services --file "$HERE/compose.yaml" "$@"
}

# compose_works: an engine that answers, and the compose plugin. A client without an engine counts for nothing.
compose_works() {
	have docker && timeout 10 docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1
}

# compose_start NAME SERVICE ANSWERS: NAME is the service in compose.yaml.
compose_start() {
	if ! compose up --detach --quiet-pull "$1" >"$STATE/compose.log" 2>&1; then
		{ say "$2" "docker compose could not start it:"; tail -n 15 "$STATE/compose.log"; } >&2
		return 1
	fi
	if ! wait_for 180 "$3"; then
		{ say "$2" "its container was started, but does not answer:"; compose logs --tail 20 "$1"; } >&2
		return 1
	fi
	say "$2" "started by docker compose"
}

compose_stop() {
	if compose_works && [ -n "$(compose ps --quiet 2>/dev/null)" ]; then
		compose down --volumes >/dev/null 2>&1 && say Docker "containers stopped"
	fi
}
