#!/usr/bin/env bash
# Installs the Debian packages given: "command:package" if the command is missing, and a
# package that brings no command, given by its name alone, if it is not installed.
set -euo pipefail

missing=()
for wanted in "$@"; do
	case $wanted in
	*:*) command -v "${wanted%%:*}" >/dev/null || missing+=("${wanted#*:}") ;;
	*) dpkg-query --show --showformat '${db:Status-Status}' "$wanted" 2>/dev/null | grep -qx installed || missing+=("$wanted") ;;
	esac
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
