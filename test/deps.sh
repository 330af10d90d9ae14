#!/bin/sh
# Sees to it that the tests have what they need: deps.sh FOLDER-FOR-NPM-PACKAGES.
# As root, or where sudo asks no password, missing packages are installed.
# Otherwise it says what to install, and fails.
set -eu
peers=$1
here=$(dirname "$0")

need=
want() { # want PROGRAM PACKAGE
	command -v "$1" >/dev/null 2>&1 || need="$need $2"
}
want git git
want gcc "gcc libc6-dev"
[ -x /usr/bin/python3 ] || need="$need python3"
want node nodejs
want npm npm
want setpriv util-linux
# The committed spawner is compared with what these compilers make of its source.
want x86_64-linux-gnu-gcc gcc-x86-64-linux-gnu
want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu

if [ -n "$need" ]; then
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "make test needs:$need. Install them with this system's package manager, then run it again." >&2
		exit 1
	elif [ "$(id -u)" = 0 ]; then
		sudo=
	elif sudo -n true 2>/dev/null; then
		sudo=sudo
	else
		echo "make test needs:$need. Run: sudo apt-get install$need" >&2
		exit 1
	fi
	$sudo apt-get update -qq
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null
fi

# Real MCP servers and the Inspector, at the versions of test/npm/package.json.
if ! cmp -s "$here/npm/package.json" "$peers/package.json"; then
	rm -rf "$peers"
	mkdir -p "$peers"
	cp "$here/npm/package.json" "$peers/package.json.new"
	(cd "$peers" && mv package.json.new package.json && npm install --no-audit --no-fund --loglevel=error --no-package-lock) || {
		rm -rf "$peers"
		echo "make test needs the npm packages of test/npm/package.json, and npm could not install them (its message is above)." >&2
		exit 1
	}
fi
