# shellcheck shell=bash
# PostgreSQL: a cluster of our own, started from Debian's binaries. Sourced by services.sh.

# A server answers a request for TLS with one letter, S or N.
postgres_answers() {
	case $(reply "$POSTGRES_PORT" '\0\0\0\10\4\322\26\57' 1) in
	53 | 4e) return 0 ;;
	esac
	return 1
}

# postgres_bin: the newest version's directory; Debian keeps initdb and pg_ctl out of PATH.
postgres_bin() {
	local initdb
	initdb=$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
	[ -n "$initdb" ] || initdb=$(command -v initdb) || return 1
	dirname "$initdb"
}

postgres_start() {
	local bin home user
	if ! postgres_bin >/dev/null; then
		if ! can_apt; then
			missing PostgreSQL "postgresql is missing, and $(why_no_apt)" "sudo apt-get install postgresql" CAISSON_TEST_POSTGRES_URL
			return 1
		fi
		say PostgreSQL "installing postgresql"
		apt_install postgresql || return 1
	fi
	bin=$(postgres_bin)
	user=$(id -un)
	! is_root || user=postgres # it refuses to run as root
	home=$STATE/postgres-$POSTGRES_PORT
	mkdir -p "$home"
	! is_root || chown "$user" "$home"
	if [ ! -e "$home/data/PG_VERSION" ]; then
		(as "$user" "$bin/initdb" -D "$home/data" -U postgres -A trust -E UTF8 --no-sync) >"$STATE/postgres-$POSTGRES_PORT.log" 2>&1 9>&- ||
			failed "postgres-$POSTGRES_PORT" PostgreSQL || return 1
	fi
	(as "$user" "$bin/pg_ctl" -D "$home/data" -l "$home/log" -w -t 60 -o "-p $POSTGRES_PORT -h $HOST -k $home" start) \
		</dev/null >"$STATE/postgres-$POSTGRES_PORT.log" 2>&1 9>&- || true
	wait_for 10 postgres_answers || failed "postgres-$POSTGRES_PORT" PostgreSQL || return 1
	say PostgreSQL "started on $HOST:$POSTGRES_PORT"
}

postgres_stop() {
	local bin home user
	home=$STATE/postgres-$POSTGRES_PORT
	bin=$(postgres_bin) || return 0
	user=$(id -un)
	! is_root || user=postgres
	# The cluster's own pid file tells which process it is.
	if [ -e "$home/data/postmaster.pid" ] && (as "$user" "$bin/pg_ctl" -D "$home/data" -m fast -w stop) >/dev/null 2>&1; then
		say PostgreSQL "stopped"
	fi
}

# postgres_programs: what tests of faults start themselves, also where the shared server runs elsewhere: PostgreSQL's programs and PgBouncer.
postgres_programs() {
	local -a packages=()
	postgres_bin >/dev/null || packages+=(postgresql)
	have pgbouncer || [ -x /usr/sbin/pgbouncer ] || packages+=(pgbouncer)
	[ "${#packages[@]}" -gt 0 ] || return 0
	if ! can_apt; then
		{
			say PostgreSQL "tests start clusters and poolers of their own, but ${packages[*]} is missing, and $(why_no_apt)"
			printf '%-11s   run:  %s\n' '' "sudo apt-get install ${packages[*]}   (elsewhere: install PostgreSQL 13 or newer and PgBouncer, with initdb and pgbouncer in PATH)"
		} >&2
		return 1
	fi
	say PostgreSQL "installing ${packages[*]}"
	apt_install "${packages[@]}"
}
