# SPDX-License-Identifier: Apache-2.0
"""Define the experiment file that tests of radios change; tests name its lines."""

from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from specs import HEAD

RADIO = (
    HEAD
    + """\
  wired: {between: [S, N], rate: 10 Mb/s, delay: 30 ms, queue: 1 bdp}
  wireless:
    between: [N, D]
    emulator: sdr
    delay: 20 ms
    queue: 20 packets
    radio:
      modem: ofdm
      modulation: qpsk
      rate: 2 Mbit
      snr: $snr
    backward:
      radio: {snr: 30 dB}
flows:
  bulk: {from: S, to: D, scheme: $scheme, payload: 1000 bytes}
duration: 10 s
matrix:
  snr: [12 dB, 15.5 dB]
  scheme: [newreno, cubic]
report: {x: snr}
"""
)
ARQ = "queue: 20 packets\n    arq: {retries: 3, feedback: 8 ms}"


# PLAIN has a link with the rate of the radio in place of the radio.
_OF_RADIO = RADIO[RADIO.index("    radio:\n") : RADIO.index("flows:\n")]
PLAIN = RADIO.replace(_OF_RADIO, "").replace("emulator: sdr", "rate: 2 Mb/s")
PLAIN = PLAIN.replace("title: A test", "title: $snr")


def read_points(directory, text=RADIO):
    path = directory / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)


def plan_points(directory, text=RADIO):
    return [plan for point in read_points(directory, text) for plan in plan_runs(point, None)]


def change_lines(*changes, text=RADIO):
    """Return the experiment file with lines replaced."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
