#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the virtual radio has the outcomes of the simulated one and leaves no processes."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from flows import run
from gnuradio import gr_unittest, nagi
from gnuradio.nagi.checks import ConfigError
from gnuradio.nagi.radio import parse_radio
from gnuradio.nagi.stations import StationError, Stations, VirtualRadio

RADIO = {
    "by": "virtual",
    "modem": "ofdm",
    "modulation": "qpsk",
    "sample_rate_hz": 2083333,
    "code_rate": "none",
    "forward": {"snr_db": 11.0, "fading": "rician", "k_factor_db": 10.0, "doppler_hz": 20.0},
    "backward": {"snr_db": 11.0},
}
NUMBERS = {"forward": 4, "backward": 5}


def has_ended(pid):
    """Return whether a process has ended, waited for or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


class Virtual(gr_unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def stations(self, radio=RADIO):
        return Stations(radio, self.directory, 3, NUMBERS)

    def test_outcomes_are_those_of_the_simulated_radio(self):
        rng = np.random.default_rng(1)
        sent = [rng.bytes(int(size)) for size in rng.integers(1, 1500, 200)]
        config = parse_radio(RADIO)
        with self.stations() as stations:
            for direction, number in NUMBERS.items():
                simulated = nagi.SimulatedRadio(config, direction, 3, number)
                expected = run([("packets", simulated, "outcomes")], sent)
                virtual = VirtualRadio(self.directory, direction)
                outcomes = run([("packets", virtual, "outcomes")], sent)
                self.assertEqual(outcomes, expected)
                self.assertEqual({meta["outcome"] for meta, _ in outcomes}, {0, 3})
            self.assertEqual(stations.list_ended(), [])

    def test_processes_end_with_their_input(self):
        with self.stations() as stations:
            processes = list(stations.processes.values())
            self.assertEqual(len(processes), 3)
        self.assertEqual([process.returncode for process in processes], [0, 0, 0])

    def test_processes_end_with_whoever_started_them(self):
        program = (
            "import json, os, signal, sys\n"
            "from pathlib import Path\n"
            "from gnuradio.nagi.stations import Stations\n"
            "with Stations(*json.loads(sys.argv[1])[:1], Path(sys.argv[2]), 1,"
            " {'forward': 0, 'backward': 1}) as stations:\n"
            "    print(*[p.pid for p in stations.processes.values()], flush=True)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        starter = subprocess.run(
            [sys.executable, "-B", "-c", program, json.dumps([RADIO]), str(self.directory)],
            stdout=subprocess.PIPE,
            text=True,
        )
        pids = [int(word) for word in starter.stdout.splitlines()[-1].split()]
        self.assertEqual(len(pids), 3)
        self.assertTrue(self.waitFor(lambda: all(has_ended(pid) for pid in pids), timeout=60))

    def test_a_process_that_dies_is_seen(self):
        with self.stations() as stations:
            stations.processes["channel"].kill()
            stations.processes["channel"].wait()
            self.assertEqual(stations.list_ended(), ["channel (status -9)"])

    def test_wrong_tasks_are_refused(self):
        for task, word in (
            ("no JSON", "JSON"),
            ("[]", "object"),
            ("{}", "role"),
            (
                json.dumps({"role": "x", "directory": "", "radio": 1, "seed": 1, "directions": 1}),
                "x",
            ),
        ):
            done = subprocess.run(
                [sys.executable, "-B", "-m", "gnuradio.nagi.stations"],
                input=task,
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 2)
            self.assertIn(word, done.stderr)

    def test_a_process_that_does_not_start_is_an_error(self):
        stations = self.stations()
        stations._tasks["channel"]["directions"] = {}
        with self.assertRaisesRegex(StationError, "channel"), stations:
            pass

    def test_directories_must_be_private_and_short(self):
        open_to_all = self.directory / "open"
        open_to_all.mkdir(mode=0o755)
        deep = self.directory / ("d" * 100)
        deep.mkdir(mode=0o700)
        missing = self.directory / "missing"
        for directory, word in ((open_to_all, "0700"), (deep, "long"), (missing, "create it")):
            with self.assertRaisesRegex(ConfigError, word):
                Stations(RADIO, directory, 1, NUMBERS)


if __name__ == "__main__":
    unittest.main()
