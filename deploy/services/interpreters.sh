# shellcheck shell=bash
# Python and Node.js, with which tests run the webhook receivers in examples/receivers. Sourced by services.sh.

# python_runs and node_runs: a version that is new enough, under the name that the tests look for. Debian 11 has Node.js 12.
python_runs() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; }
node_runs() { node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 18 || (a == 18 && b >= 3) ? 0 : 1)' 2>/dev/null; }

interpreters() {
	local -a packages=()
	python_runs || packages+=(python3)
	node_runs || packages+=(nodejs)
	[ "${#packages[@]}" -gt 0 ] || return 0
	if can_apt; then
		say Receivers "installing ${packages[*]}"
		apt_install "${packages[@]}" || return 1
		if python_runs && node_runs; then
			return 0
		fi
	fi
	{
		say Receivers "tests run webhook receivers with python3 (3.8 or newer) and node (18.3 or newer), and cannot: ${packages[*]} is missing or too old"
		printf '%-11s   run:  %s\n' '' "sudo apt-get install ${packages[*]}   (or install Python 3.8 and Node.js 18.3, or newer, with python3 and node in PATH)"
	} >&2
	return 1
}
