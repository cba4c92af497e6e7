#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Check layout, types, imports and licences, which each change must pass in addition to the tests. No compiler is needed.
# `lint.sh --fix` corrects the layout.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/.venv/bin:$PATH
mapfile -t native < <(git ls-files '*.cpp' '*.hpp' '*.hpp.in' 'link-emulator/radio/gr-nagi/*.cc' \
    'link-emulator/radio/gr-nagi/*.h' 'hosts/tcp/*.c' 'hosts/tcp/*.h' '*.bpf.c' 'runtime/*.h' 'link-emulator/bench/*.h')

if [[ ${1:-} == --fix ]]; then
    ruff check -q --fix . || true
    ruff format -q .
    python docs/roles.py
    clang-format -i "${native[@]}"
    exit
fi
no_licence='\.(jsonl?|pcap|pcapng|parquet|svg|md|mahimahi|txtpb|expected|packets|digests)$|^p4/compiled-with.txt$|^experiments/results/|/fuzz/[^/]+/|^LICENSE$|^\.gitignore$'
if unmarked=$(git ls-files | grep -vE "$no_licence" | xargs grep -d skip -L SPDX-License-Identifier) && [[ -n $unmarked ]]; then
    echo "no SPDX-License-Identifier: $unmarked"
    exit 1
fi
ruff check .
ruff format --check .
mypy -n 2 # processes
lint-imports --no-cache --no-logo
clang-format --dry-run --Werror "${native[@]}"
(cd ansible && ansible-lint --offline -q)
shellcheck .ci/run tools/as_* tools/*.sh
shellcheck -s bash hosts/guest/compile.sh
echo "lint-quick: all good"
