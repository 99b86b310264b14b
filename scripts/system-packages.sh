#!/bin/sh
# Makes sure that what the build needs from the system is there; installs it where that is possible.
set -eu

packages=""
need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}
need g++ g++
need cmake cmake
need nasm nasm
need make make
"${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"

if ! command -v cargo >/dev/null 2>&1; then
    echo "forebay's core needs a Rust toolchain, 1.89 or later, which rustup installs:" >&2
    echo "  Debian 13, Ubuntu 24.04 and later: apt-get install rustup && rustup default stable" >&2
    echo "  Debian 12 and others have no such package: install rustup from Rust's website" >&2
    exit 1
fi
[ -z "$packages" ] && exit 0

install="apt-get update && apt-get install -y --no-install-recommends$packages"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "please install with your system's package manager:$packages" >&2
    exit 1
elif [ "$(id -u)" = 0 ]; then
    sh -c "$install"
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    sudo sh -c "$install"
else
    echo "this step needs root; please run:" >&2
    echo "    sudo sh -c '$install'" >&2
    exit 1
fi
