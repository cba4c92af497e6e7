#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzz the native parsers with sanitizers: fuzz.sh SECONDS [TARGET...]. cmake/fuzz.cmake lists the targets.
# Inputs that fail are written to build/fuzz, inputs that reach new code to build/fuzz/found-TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds for each target}
shift
only=("$@")
[[ -e $(clang++ -print-file-name=libclang_rt.fuzzer-x86_64.a) ]] || tools/install_packages.sh fuzz
cmake --preset fuzz --log-level=WARNING >/dev/null
targets=(nagi_fuzz_targets)
if [[ ${#only[@]} -gt 0 ]]; then targets=("${only[@]/#/fuzz_}"); fi
cmake --build build/fuzz --target "${targets[@]}"
status=0
while read -r target length seeds; do
    if [[ ${#only[@]} -gt 0 && " ${only[*]} " != *" $target "* ]]; then continue; fi
    found=build/fuzz/found-$target
    mkdir -p "$found"
    # shellcheck disable=SC2086 # seeds are several files
    if [[ -n $seeds ]]; then cp -n $seeds "$found"; fi
    echo "== fuzzing $target for $seconds s"
    build/fuzz/fuzz/fuzz_"$target" -max_total_time="$seconds" -max_len="$length" -timeout=20 \
        -artifact_prefix=build/fuzz/"$target"- -print_final_stats=1 -verbosity=0 "$found" </dev/null || status=1
done <build/fuzz/fuzz/targets
exit $status
