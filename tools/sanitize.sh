#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build with sanitizers of memory and undefined behaviour, and run: sanitize.sh tests runs the native tests, sanitize.sh seeds
# the inputs of the fuzz targets, without clang.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
tests) preset=sanitize target=all ;;
seeds) preset=seeds target=nagi_fuzz_targets ;;
*) echo "nagi: tests or seeds?" >&2; exit 2 ;;
esac
cmake --preset $preset --log-level=WARNING >/dev/null
echo "== running native $1 under sanitizers"
cmake --build build/$preset --target $target
ctest --output-on-failure -j 2 --test-dir build/$preset | tail -n 5
