#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build with sanitizers of memory and undefined behaviour, and run: sanitize.sh tests runs the native tests, sanitize.sh seeds
# the inputs of the fuzz targets, without clang.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
tests) build=build/sanitize option=-DNAGI_SANITIZE=ON target=all ;;
seeds) build=build/seeds option=-DNAGI_FUZZ=SEEDS target=nagi_fuzz_targets ;;
*) echo "nagi: tests or seeds?" >&2; exit 2 ;;
esac
cmake -S . -B $build -G Ninja $option --log-level=WARNING >/dev/null
echo "== running native $1 under sanitizers"
cmake --build $build --target $target
ctest --output-on-failure -j 2 --test-dir $build | tail -n 5
