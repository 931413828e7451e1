# shellcheck shell=bash
# What the scripts beside this file share: where things are, how to wait, start, stop and speak. Sourced, never run.

HOST=127.0.0.1
# shellcheck disable=SC2034 # read by the scripts that source this one
{
	AMQP_PORT=${SERVICES_AMQP_PORT:-5672}
	SQS_PORT=${SERVICES_SQS_PORT:-4566}
	POSTGRES_PORT=${SERVICES_POSTGRES_PORT:-5432}
}

# Checkouts on one machine share its ports, so they share the servers and this directory too.
if [ -n "${SERVICES_DIR:-}" ]; then
	STATE=$SERVICES_DIR
elif [ "$(id -u)" = 0 ]; then
	STATE=/var/lib/caisson-services # not below /root: PostgreSQL and RabbitMQ run as users of their own
else
	STATE=${XDG_CACHE_HOME:-$HOME/.cache}/caisson-services
fi

say() { printf '%-11s %s\n' "$1:" "$2"; }

# missing SERVICE WHAT COMMAND VARIABLE: says what to do about a service that cannot be started here.
missing() {
	{
		say "$1" "not running, and not startable here: $2"
		printf '%-11s   run:  %s\n' '' "$3"
		printf '%-11s   or set %s to a server that runs, or start a Docker engine with its compose plugin\n' '' "$4"
	} >&2
}

is_root() { [ "$(id -u)" = 0 ]; }
have() { command -v "$1" >/dev/null 2>&1; }

# reply PORT FORMAT BYTES: sends FORMAT, as printf makes it, and prints the first BYTES of the answer in hex.
reply() {
	# shellcheck disable=SC2016 # the inner shell expands them
	timeout 5 bash -c '
		exec 3<>"/dev/tcp/$1/$2" || exit 1
		printf "$3" >&3
		head -c "$4" <&3 | od -An -v -tx1 | tr -d " \n"
	' reply "$HOST" "$1" "$2" "$3" 2>/dev/null
}

listens() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; }

# wait_for SECONDS COMMAND...: until the command succeeds, or the seconds are over.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

# started_at PID: when a process began, in the kernel's ticks; nothing for one that has ended. With the id it names one process for good.
# The name in the second field may hold spaces, so fields are counted from its closing bracket. Z is a process nobody has waited for.
started_at() { sed -e 's/^.*) //' -e '/^Z/d' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# as USER COMMAND...: runs the command as USER if root calls, else as the caller. It replaces the shell's child, so $! is the command.
as() {
	local user=$1
	shift
	if is_root && [ "$user" != root ]; then
		exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups -- "$@"
	fi
	exec "$@"
}

# background NAME USER COMMAND...: starts a server that outlives this script, and remembers which process it is.
# It must not inherit the lock (descriptor 9), or the next caller waits for as long as the server runs.
background() {
	local name=$1 user=$2 pid
	shift 2
	(as "$user" setsid "$@") </dev/null >"$STATE/$name.log" 2>&1 9>&- &
	pid=$!
	echo "$pid $(started_at "$pid")" >"$STATE/$name.pid"
}

# running NAME: prints the process that background started under NAME, if it still runs.
running() {
	local pid began
	read -r pid began 2>/dev/null <"$STATE/$1.pid" || return 1
	[ -n "$began" ] && [ "$(started_at "$pid")" = "$began" ] && echo "$pid"
}

# gone NAME: the opposite of running, for wait_for.
gone() { ! running "$1" >/dev/null; }

# end NAME: asks what background started under NAME to end, then makes it.
end() {
	local pid
	if pid=$(running "$1"); then
		kill -TERM "$pid"
		wait_for 30 gone "$1" || kill -s KILL -- "-$pid"
		say "$2" "stopped"
	fi
	rm -f "$STATE/$1.pid"
}

# failed NAME SERVICE: shows why a server that was started does not answer.
failed() {
	{
		say "$2" "was started, but does not answer. The end of $STATE/$1.log:"
		tail -n 20 "$STATE/$1.log"
	} >&2
	return 1
}

# apt_install PACKAGE...: without starting the services that come with the packages, since ours listen on the loopback only.
apt_install() {
	local policy=/usr/sbin/policy-rc.d ours='' status=0
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=120)
	if ! [ -e "$policy" ]; then
		ours=yes
		printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
	fi
	if ! "${apt[@]}" install --no-install-recommends "$@" >"$STATE/apt.log" 2>&1; then
		{ "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "$@"; } >"$STATE/apt.log" 2>&1 || status=$?
	fi
	[ -z "$ours" ] || rm -f "$policy"
	[ "$status" = 0 ] || tail -n 10 "$STATE/apt.log" >&2
	return "$status"
}

can_apt() { is_root && have apt-get; }

# why_no_apt: the reason for missing().
why_no_apt() {
	if have apt-get; then echo "packages need root"; else echo "there is no apt-get"; fi
}
