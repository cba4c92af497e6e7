# SPDX-License-Identifier: Apache-2.0
"""The control plane: selects frames for the board itself and passes them to LiteEth.

A frame is for the board if it has the board's MAC address, or is an ARP request for its IP address.
All other frames belong to the link. The board's own frames are sent between frames of the link.
"""

import ipaddress

from liteeth.common import eth_phy_description
from liteeth.core import LiteEthUDPIPCore
from liteeth.frontend.etherbone import LiteEthEtherbone
from litex.gen import ClockDomainsRenamer, LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.packet import PacketFIFO
from migen import If, Signal

from .crossing import Crossing
from .ports import FRAMES, MAX_FRAME_WORDS, TIMED
from .registers import Registers

_ARP = int.from_bytes(b"\x08\x06", "little")


class ControlFilter(LiteXModule):
    """Passes each frame of `sink` to `link` or to `control`, in the core's clock domain."""

    def __init__(self, mac_address: int, ip_address: str) -> None:
        self.sink = sink = stream.Endpoint(TIMED)
        self.out = out = Registers(TIMED)
        link, self.link = out.sink, out.source
        self.control = control = stream.Endpoint(FRAMES)
        # Words wait here until the frame can be classified. For ARP, this needs six words.
        self.words = words = stream.SyncFIFO(TIMED, 16, buffered=True)
        self.choices = choices = stream.SyncFIFO([("is_control", 1)], 8, buffered=True)

        mac = int.from_bytes(mac_address.to_bytes(6, "big"), "little")
        target = int.from_bytes(ipaddress.IPv4Address(ip_address).packed, "little")
        place = Signal(3)  # index of the current word in its frame, up to 7
        is_for_us, is_broadcast, is_arp, is_low_target = (Signal() for _ in range(4))
        self.sync += If(
            sink.valid & sink.ready,
            If(place != 7, place.eq(place + 1)),
            If(
                place == 0,
                is_for_us.eq(sink.data[:48] == mac),
                is_broadcast.eq(sink.data[:48] == (1 << 48) - 1),
                is_arp.eq(0),
                is_low_target.eq(0),
            ),
            If(place == 1, is_arp.eq(sink.data[32:48] == _ARP)),
            If(place == 4, is_low_target.eq(sink.data[48:] == target & 0xFFFF)),
            If(sink.last, place.eq(0)),
        )
        is_decided = (place == 5) | (sink.last & (place < 5))
        # The signal is one clock late, so the limit leaves room for words accepted in the meantime.
        is_roomy = Signal()
        self.sync += is_roomy.eq((words.level < words.depth - 4) & (choices.level < 4))
        is_asked = (
            is_broadcast & is_arp & is_low_target & (place == 5) & (sink.data[:16] == target >> 16)
        )
        self.comb += [
            sink.connect(words.sink, omit={"valid", "ready"}),
            sink.ready.eq(is_roomy),
            words.sink.valid.eq(sink.valid & is_roomy),
            choices.sink.valid.eq(sink.valid & is_roomy & is_decided),
            choices.sink.is_control.eq((is_for_us & (place != 0)) | is_asked),
            words.source.connect(link, omit={"valid", "ready"}),
            words.source.connect(control, omit={"valid", "ready", "is_second"}),
            link.valid.eq(words.source.valid & choices.source.valid & ~choices.source.is_control),
            control.valid.eq(words.source.valid & choices.source.valid & choices.source.is_control),
            words.source.ready.eq((link.valid & link.ready) | (control.valid & control.ready)),
            choices.source.ready.eq(words.source.valid & words.source.ready & words.source.last),
        ]


class WholeFrames(LiteXModule):
    """Accepts a word in every clock and outputs complete frames without errors.

    Frames with errors, and frames for which there is no room, are dropped. `dropped` pulses for
    each frame that is dropped for lack of room.
    """

    def __init__(self, depth: int = 512) -> None:
        self.entry = entry = stream.Buffer(FRAMES)
        self.words = words = stream.SyncFIFO(FRAMES, depth, buffered=True)
        self.read = read = stream.Buffer(FRAMES)  # block RAM is slow
        self.out = out = Registers(FRAMES)
        self.ends = ends = stream.SyncFIFO([("is_bad", 1)], 16, buffered=True)
        self.exit = leaves = Registers(FRAMES)
        self.sink, self.source = entry.sink, leaves.source
        self.dropped = Signal()
        came = entry.source  # the words that arrive
        # A frame is left out if there is no room at its first word, and bad if a word has an error.
        is_first, is_left_out, is_roomy = Signal(reset=1), Signal(), Signal()
        was_bad, is_bad, now_left_out = Signal(), Signal(), Signal()
        # The signal is one clock late, so the limit leaves room for words accepted in the meantime.
        self.sync += [
            is_roomy.eq(
                (words.level < depth - 2 * MAX_FRAME_WORDS) & (ends.level < ends.depth - 4)
            ),
            If(
                came.valid,
                is_first.eq(came.last),
                is_left_out.eq(now_left_out),
                was_bad.eq(~came.last & is_bad),
            ),
        ]
        gives = Signal()  # a word is output or dropped
        self.comb += [
            came.ready.eq(1),
            is_bad.eq(was_bad | (came.error != 0)),
            now_left_out.eq((is_first & ~is_roomy) | (~is_first & is_left_out)),
            self.dropped.eq(came.valid & came.last & now_left_out),
            came.connect(words.sink, omit={"valid", "ready"}),
            words.sink.valid.eq(came.valid & ~now_left_out),
            ends.sink.is_bad.eq(is_bad),
            ends.sink.valid.eq(came.valid & came.last & ~now_left_out),
            # A frame is output only after its end has been received.
            words.source.connect(read.sink),
            read.source.connect(out.sink),
            out.source.connect(leaves.sink, omit={"valid", "ready", "error"}),
            leaves.sink.valid.eq(out.source.valid & ends.source.valid & ~ends.source.is_bad),
            out.source.ready.eq(ends.source.valid & (leaves.sink.ready | ends.source.is_bad)),
            gives.eq(out.source.valid & out.source.ready),
            ends.source.ready.eq(gives & out.source.last),
        ]


class _BytePhy:
    """An interface that LiteEth's stack uses as a PHY.

    It carries neither preamble nor FCS, because the port's MAC handles both.
    """

    dw = 8
    with_preamble_crc = False
    with_padding = False
    integrated_ifg_inserter = True

    def __init__(self) -> None:
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))


class ControlPlane(LiteXModule):
    """LiteEth's UDP stack and Etherbone.

    `sink` receives frames and `source` sends the answers, both in the clock domain `core`. `bus` is
    Etherbone's Wishbone master in `sys`.
    """

    def __init__(self, mac_address: int, ip_address: str, udp_port: int, clk_freq: float) -> None:
        self.whole = whole = ClockDomainsRenamer("core")(WholeFrames())
        self.sink, self.dropped = whole.sink, whole.dropped
        self.into = into = Crossing(FRAMES, "core", "sys")
        self.narrow = narrow = stream.StrideConverter(FRAMES, eth_phy_description(8))
        self.ends = ends = _LastByte()
        phy = _BytePhy()
        self.comb += [
            whole.source.connect(into.sink),
            into.source.connect(narrow.sink),
            narrow.source.connect(ends.sink),
            ends.source.connect(phy.source),
        ]
        core = LiteEthUDPIPCore(
            phy, mac_address, ip_address, clk_freq, dw=8, with_ip_broadcast=False
        )
        self.core = ClockDomainsRenamer({"eth_rx": "sys", "eth_tx": "sys"})(core)
        self.etherbone = LiteEthEtherbone(core.udp, udp_port, buffer_depth=128)
        self.bus = self.etherbone.wishbone.bus

        self.mark = mark = _MarkLast()
        self.wide = wide = stream.StrideConverter(eth_phy_description(8), FRAMES)
        layout = stream.EndpointDescription(FRAMES.payload_layout)
        self.out = out = PacketFIFO(layout, 256, 8, buffered=True)
        self.away = away = Crossing(FRAMES, "sys", "core")
        self.source = away.source
        self.comb += [
            phy.sink.connect(mark.sink),
            mark.source.connect(wide.sink),
            wide.source.connect(out.sink),
            out.source.connect(away.sink),
        ]


class _LastByte(LiteXModule):
    """Removes the padding bytes after the frame's last byte, which `last_be` marks."""

    def __init__(self) -> None:
        self.sink = sink = stream.Endpoint(eth_phy_description(8))
        self.source = source = stream.Endpoint(eth_phy_description(8))
        is_over = Signal()
        self.sync += If(
            sink.valid & sink.ready,
            If(sink.last, is_over.eq(0)).Elif(sink.last_be, is_over.eq(1)),
        )
        self.comb += [
            sink.connect(source, omit={"valid", "ready", "last", "last_be"}),
            source.last.eq(sink.last_be | sink.last),
            source.last_be.eq(source.last),
            source.valid.eq(sink.valid & ~is_over),
            sink.ready.eq(source.ready | is_over),
        ]


class _MarkLast(LiteXModule):
    """Sets `last_be` equal to `last` in a stream of bytes."""

    def __init__(self) -> None:
        self.sink = sink = stream.Endpoint(eth_phy_description(8))
        self.source = source = stream.Endpoint(eth_phy_description(8))
        self.comb += [sink.connect(source, omit={"last_be"}), source.last_be.eq(sink.last)]
