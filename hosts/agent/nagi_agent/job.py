# SPDX-License-Identifier: Apache-2.0
"""What an agent is, whatever the run: which node, which interfaces, where its files go."""

from __future__ import annotations

import os
from typing import Optional

from nagi_agent import host, processes
from nagi_agent.contracts import Batch
from nagi_agent.hold import SETTINGS_JOURNAL

BOARD = "board"  # in place of an interface of the emulator: a board's port


class Job:
    """A batch's, without its runs. `interfaces`: link -> a node's interface; `ends`: link -> the
    emulator's interfaces at both ends, medium -> those that face its stations; `macs`: medium ->
    the stations' MAC addresses, where they are not the plan's."""

    def __init__(self, batch: Batch) -> None:
        self.node = batch.node
        self.is_emulator = batch.is_emulator
        self.interfaces = {
            link: name for link, name in batch.interfaces.items() if isinstance(name, str)
        }
        self.ends = {
            link: ends for link, ends in batch.interfaces.items() if not isinstance(ends, str)
        }
        self.macs = batch.macs
        self.spool = batch.spool
        self.state = batch.state
        self.user = batch.user or processes.service_user()
        self.nagi_link = batch.nagi_link
        self.nagi_sdr = batch.nagi_sdr
        self.nagi_fpga = batch.nagi_fpga
        self.fpga_images = batch.fpga_images
        self.nagi_switch = batch.nagi_switch
        self.simple_switch = batch.simple_switch
        self.simple_switch_client = batch.simple_switch_client
        self.p4runtime = batch.p4runtime
        self.p4runtime_here = batch.p4runtime_here
        self.virtual = batch.virtual
        self.files = batch.files
        self.facts = host.facts()

    @property
    def daemon_user(self) -> Optional[str]:
        """The user as whom nagi-link and nagi-switch go on once all is open. A guest's root has no
        right outside the guest: there they stay what they are, which is one of its users less."""
        return None if self.virtual else self.user

    @property
    def all_interfaces(self) -> list[str]:
        """Those on links and media; the emulator has one for each end and station."""
        of_emulator = {name for ends in self.ends.values() for name in ends if name != BOARD}
        return sorted(of_emulator.union(self.interfaces.values()))

    @property
    def settings_journal(self) -> str:
        """Undoes what a run has set."""
        return os.path.join(self.state, SETTINGS_JOURNAL)
