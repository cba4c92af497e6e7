#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run whole experiments and publish their results (takes hours): publish_results.sh [NAME...]. NAME is EXPERIMENT or
# EXPERIMENT:VARIANT; without NAME, all in the list below are run. DASK=ADDRESS uses a cluster.
# The small files for the repository are written to experiments/results; reports, checksums and bundles for a release to
# results/release.
set -euo pipefail
cd "$(dirname "$0")/.."
all=(
    achievement-2008 achievement-2008:uncapped achievement-2008:westwood-min-rto
    multihop-2005 multihop-2005:grid
    westwoodvt-2007 westwoodvt-2007:min-rto westwoodvt-2007:cross
    tcp-real-2001 tcp-real-2001:{slow,slow-min-rto,reverse,handoff,handoff-min-rto,handoff-reno2001}
    tcp-real-2001:{playback,playback-reverse,playback-handoff,token,token-min-rto,token-reno2001}
)
if [[ $# -eq 0 ]]; then set -- "${all[@]}"; fi
for campaign in "$@"; do
    experiment=${campaign%%:*}
    options=()
    if [[ $campaign == *:* ]]; then options+=(--variant "${campaign#*:}"); fi
    if [[ -n ${DASK:-} ]]; then options+=(--dask "$DASK"); fi
    name=${campaign/:/-}
    echo "== $name"
    .venv/bin/nagi run "experiments/$experiment.yaml" "${options[@]}" --out "results/$name"
    .venv/bin/nagi publish "results/$name" "experiments/results/$name"
    mkdir -p results/release
    cp "results/$name/release/"* results/release
done
python=.venv/bin/python
$python experiments/results/silences.py results/tcp-real-2001-handoff*
$python experiments/results/window_series.py results/achievement-2008 results/achievement-2008-uncapped
$python experiments/results/statements.py westwoodvt-2007-cross
$python experiments/results/figures.py
