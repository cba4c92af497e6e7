# SPDX-License-Identifier: Apache-2.0
"""Runs nagi-link for one run, configured from its plan."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import Any

from nagi_agent.commands import status_in_words
from nagi_agent.processes import end, log_of, start

_START_PATIENCE = 10.0  # an interface takes about 0.1 s
_END_PATIENCE = 5.0
_SOCKET = "nagi-link.sock"
_LOG = "nagi-link.log"
_CONFIG = "nagi-link.json"
ACCOUNT = "links.json"
PACKETS = "packets.bin"
DROPS = "drops.pcapng"


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def configuration(
    plan: dict[str, Any], interfaces: dict[str, list[str]], epoch: float, *, virtual: bool = False
) -> dict[str, Any]:
    """nagi-link's configuration for a plan. `interfaces`: link -> the two ends' interfaces;
    `virtual`: time stands still while nagi-link runs."""
    return {
        "schema_version": 1,
        "seed": plan["seed"],
        "epoch_realtime_ns": int(epoch * 1e9),
        "virtual_time": virtual,
        "account": ACCOUNT,
        "packets": PACKETS,
        "drops": DROPS,
        "control_socket": _SOCKET,
        "links": [
            {
                "name": link["name"],
                "id": link["id"],
                "a": interfaces[link["name"]][0],
                "b": interfaces[link["name"]][1],
                "a_to_b": _without_nulls(link["forward"]),
                "b_to_a": _without_nulls(link["backward"]),
            }
            for link in plan["links"]
        ],
    }


class Emulator:
    """A running nagi-link. Its files are in `directory`, which is also where it runs: socket paths
    may not be long, file paths may."""

    def __init__(self, program: str, configuration: dict[str, Any], directory: str) -> None:
        self._directory = directory
        with open(os.path.join(directory, _CONFIG), "w", encoding="utf-8") as file:
            json.dump(configuration, file, indent=1)
        with open(os.path.join(directory, _LOG), "wb") as log:
            self._process = start([program, "run", _CONFIG], stderr=log, cwd=directory)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_PATIENCE
        descriptor = os.open(self._directory, os.O_PATH)
        try:
            while time.monotonic() < deadline:
                with socket.socket(socket.AF_UNIX) as probe:
                    if probe.connect_ex(f"/proc/self/fd/{descriptor}/{_SOCKET}") == 0:
                        return
                if self._process.poll() is not None:
                    break
                time.sleep(0.005)
        finally:
            os.close(descriptor)
        self.check()
        raise RuntimeError(f"nagi-link did not start: {self._said()}")

    def check(self) -> None:
        """Raises RuntimeError if it no longer runs."""
        if self._process.poll() is not None:
            raise RuntimeError(f"nagi-link {self._end_in_words()}: {self._said()}")

    def stop(self) -> None:
        self.check()
        if end(self._process, signal.SIGTERM, _END_PATIENCE) != 0:
            raise RuntimeError(f"nagi-link {self._end_in_words()}: {self._said()}")

    def kill(self) -> None:
        end(self._process, signal.SIGKILL, _END_PATIENCE)

    def _end_in_words(self) -> str:
        return status_in_words(self._process.returncode)

    def _said(self) -> str:
        return log_of(os.path.join(self._directory, _LOG))
