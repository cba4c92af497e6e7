#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Build what a run in virtual time needs, and run the quick achievement experiment to a PDF. Where the guest kernel cannot
# be had, the runs take place in network namespaces of this machine, as root.
set -euo pipefail
cd "$(dirname "$0")/.."
lab=virtual
as_root=()
if ! make --no-print-directory virtual-lab; then
    lab=netns
    echo "nagi: there is no virtual lab here (see above), so runs take place in network namespaces, in real time, as root:" \
        "on a busy machine many become invalid" >&2
    as_root=(tools/as_root)
    make --no-print-directory native || exit 2
fi
echo "== running the quick achievement experiment"
"${as_root[@]}" .venv/bin/nagi run experiments/achievement-2008.yaml --quick --lab $lab --skip-unavailable
echo "nagi is at .venv/bin/nagi"
