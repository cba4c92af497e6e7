#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build with sanitizers for memory errors and undefined behaviour. `sanitize.sh tests` then runs the native tests,
# `sanitize.sh seeds` runs the fuzz targets on their seeds, which needs no clang.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
tests) preset=sanitize target=all ;;
seeds) preset=seeds target=nagi_fuzz_targets ;;
*) echo "nagi: usage: sanitize.sh tests, or sanitize.sh seeds" >&2; exit 2 ;;
esac
cmake --preset $preset --log-level=WARNING >/dev/null
echo "== running native $1 under sanitizers"
cmake --build build/$preset --target $target
ctest --output-on-failure -j 2 --test-dir build/$preset | tail -n 5
