#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build the virtual lab, and run the quick achievement experiment, whose report is a PDF. If the guest kernel cannot be
# built or downloaded, runs use network namespaces of this machine, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
lab=virtual
as_root=()
if ! make --no-print-directory virtual-lab; then
    lab=netns
    echo "nagi: there is no virtual lab here (see above), so runs use network namespaces, in real time, as root;" \
        "if the machine is busy, many runs become invalid" >&2
    as_root=(tools/as_root)
    make --no-print-directory native || exit 2
fi
echo "== running the quick achievement experiment"
"${as_root[@]}" .venv/bin/nagi run experiments/achievement-2008.yaml --quick --lab $lab --skip-unavailable
echo "nagi is at .venv/bin/nagi"
