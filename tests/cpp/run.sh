#!/bin/sh
# Builds and runs the C++ tests against the static library, without torch.
set -eu
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for test in tests/cpp/*.cpp; do
    name=$(basename "$test" .cpp)
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Icpp/include -isystem target/cxxbridge \
        -o "$out/$name" "$test" target/release/libforebay_bridge.a -ldl -lm -lpthread
    # A panic is part of the test: its message is wanted, its backtrace would look like a failure.
    RUST_BACKTRACE=0 "$out/$name"
done
