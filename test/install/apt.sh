#!/usr/bin/env bash
# Installs the Debian packages given as "command:package" pairs whose command is missing.
set -euo pipefail

missing=()
for pair in "$@"; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]}; install them by hand, this system has no apt-get" >&2
	exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
	sudo=(sudo)
fi
# No service may start: the tests bring up their own servers on free ports.
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get install -y -qq --no-install-recommends "${missing[@]}"
