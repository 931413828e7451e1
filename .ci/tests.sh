#!/usr/bin/env bash
# Runs every test once: the packages that share memory between goroutines under the race detector, the others beside them without it.
# What fails runs once more, one package at a time with nothing beside it: tests that kill processes and cut networks share a machine with
# all the others. What passes only then is named at the end as flaky, and is a bug to be mended. RERUN=0 leaves it at the first time.
#
# Called by make test, which sets GO, RACE_FLAGS, RACE_PKGS, PLAIN_FLAGS and PLAIN_PKGS.
set -uo pipefail

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run NAME FLAGS PACKAGES: one go test, whose output is shown and kept. GO and flags are split into words.
run() {
	[ -n "$3" ] || return 0
	echo "$GO test $2 ($(wc -w <<<"$3") packages)"
	# shellcheck disable=SC2086
	$GO test $2 $3 2>&1 | tee "$logs/$1"
}

failed() { sed -n 's/^FAIL[[:space:]]\{1,\}\([^[:space:]]*\/[^[:space:]]*\).*/\1/p' "$logs/$1" 2>/dev/null | sort -u | tr '\n' ' '; }

run race "$RACE_FLAGS" "$RACE_PKGS" &
race=$!
run plain "$PLAIN_FLAGS" "$PLAIN_PKGS"
plain=$?
wait "$race"
race=$?
[ "$race" != 0 ] || [ "$plain" != 0 ] || exit 0

race_failed=$(failed race)
plain_failed=$(failed plain)
# A run that failed without naming a package did not get as far as its tests.
if [ "${RERUN:-1}" = 0 ] || { [ "$race" != 0 ] && [ -z "$race_failed" ]; } || { [ "$plain" != 0 ] && [ -z "$plain_failed" ]; }; then
	exit 1
fi
echo
echo "=== once more: $race_failed$plain_failed"
run again-race "$RACE_FLAGS -p 1" "$race_failed" || exit 1
run again-plain "$PLAIN_FLAGS -p 1" "$plain_failed" || exit 1
echo "=== FLAKY, failed and then passed (mend it): $race_failed$plain_failed"
grep -hE '^[[:space:]]*--- FAIL|^panic:|DATA RACE' "$logs/race" "$logs/plain" | sort -u
