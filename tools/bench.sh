#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run a benchmark: bench.sh NAME [OPTION...]. `make bench-NAME OPTIONS="..."` calls this script.
# Results are in build/bench-NAME.json. OPTIONs are passed to the benchmark, whose --help lists them.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?name a benchmark: all captures crosscheck fpga fpga-core link media medium-ns3 modem p4runtime radio switch tcp virtual}
shift
python=.venv/bin/python
json=build/bench-$name.json
need() { make --no-print-directory "$@"; }
build() { cmake --build build --target "$@"; }

case $name in
all) # the six benchmarks of nagi's own programs (twenty minutes)
    status=0
    for benchmark in link switch p4runtime radio virtual media; do "$0" "$benchmark" || status=$?; done
    exit $status
    ;;
captures) # the capture reader and other programs (two minutes; --large-gb 20 also reads a file of 20 GB)
    need setup
    $python captures/bench/bench_captures.py --json "$json" "$@"
    ;;
fpga) # speed of the simulated FPGA core (--seconds 2 --rounds 1: some minutes)
    need setup virtual-lab
    $python nagi/bench/bench_fpga.py --json "$json" "$@"
    ;;
link) # nagi-link and other emulators
    need setup
    build nagi_bench
    rattan=build/rattan/bin/rattan
    if [[ ! -x $rattan ]] && command -v cargo >/dev/null; then
        echo "== installing Rattan, for comparison (some minutes)"
        cargo install -q --locked rattan@0.1.1 --root build/rattan || echo "nagi: Rattan could not be installed"
    fi
    tools/as_root $python link-emulator/bench/bench.py --nagi-link .venv/bin/nagi-link \
        --programs build/link-emulator/bench --rattan $rattan --json build/bench.json "$@"
    ;;
media) # shared media (--seconds 5: a minute)
    need virtual-lab
    tools/as_root $python nagi/bench/bench_media.py --json "$json" "$@"
    ;;
medium-ns3) # chains of 802.11b in nagi and in ns-3 (less than an hour; --quick: two minutes)
    need virtual-lab
    need ns3
    cmake -S . -B build -G Ninja --log-level=WARNING >/dev/null
    build bench-medium-chain
    $python link-emulator/bench/medium/bench_medium.py --model build/link-emulator/bench/bench-medium-chain \
        --out build/bench-medium --json build/bench-medium.json "$@"
    ;;
modem) # losses of the modems over noise and fading, compared with theory (--packets 300)
    need sdr
    radio=link-emulator/radio/gr-nagi/bench/bench_modem.py
    PYTHONPATH=.venv/lib/python3/dist-packages /usr/bin/python3 $radio measure "$json" "$@"
    $python $radio report "$json" build/bench-modem.svg
    ;;
p4runtime) # the P4Runtime server (writes --quick: half a minute)
    need setup
    build nagi_bench
    tools/as_root $python p4/control/bench/bench_p4runtime.py --json "$json" "$@"
    ;;
radio) # nagi-sdr (both one-way --quick: half a minute; lasting: ten minutes)
    need sdr
    build nagi_bench
    tools/as_root $python link-emulator/radio/gr-nagi/bench/bench_radio.py --json "$json" "$@"
    ;;
switch) # nagi-switch, and simple_switch where it is on PATH (--quick: two minutes)
    need setup
    build nagi_bench
    tools/as_root $python p4/switch/bench/bench_switch.py --json "$json" "$@"
    ;;
tcp) # TCP schemes of nagi and of the kernel (seven minutes; throughput --seconds 0.5 --rounds 2: a minute and a half)
    need setup
    tools/as_root $python hosts/tcp/bench/bench_tcp.py --json "$json" "$@"
    ;;
fpga-core) # size and clock of the FPGA core alone, placed and routed (--seed 2 --without-poisson; ten minutes)
    need .venv/.fpga
    $python link-emulator/fpga/synthesis/synthesize.py "$@"
    ;;
crosscheck) # results of nagi and of ns-3 for the same plans
    need virtual-lab
    need ns3
    .venv/bin/nagi run experiments/crosscheck/achievement.yaml --out results/crosscheck-achievement
    $python experiments/crosscheck/crosscheck.py experiments/crosscheck/achievement.yaml results/crosscheck-achievement
    ;;
virtual) # the virtual lab (--seconds 5 --rounds 1: half a minute)
    need virtual-lab
    $python nagi/bench/bench_virtual.py --json "$json" "$@"
    ;;
*)
    echo "nagi: there is no benchmark $name; the list: tools/bench.sh" >&2
    exit 2
    ;;
esac
