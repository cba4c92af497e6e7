# SPDX-License-Identifier: Apache-2.0
"""Queue disciplines by the pseudocode of their RFCs, and a link around them.

They are a reference for the model in C++. Instants are in whole nanoseconds; the rate server is
exact.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

DELIVERED, OVERFLOW, AQM_DROP = 0, 1, 4
NOT_ECT, ECT1, ECT0, CE = range(4)


@dataclass
class Packet:
    number: int
    at: int
    size: int
    ecn: int = NOT_ECT
    flow: int = 0
    marked: bool = False
    fate: int = DELIVERED
    left: int = 0

    def mark(self) -> bool:
        """Mark the packet if it is ECN-capable, and return whether it is."""
        if self.ecn in (ECT0, ECT1):
            self.marked = True
        return self.ecn != NOT_ECT

    def drop(self, fate: int, now: int) -> None:
        self.fate, self.left = fate, now


class Discipline(Protocol):
    def enqueue(self, packet: Packet, now: int) -> None: ...
    def dequeue(self, now: int) -> Packet | None: ...


def simulate(packets: list[Packet], discipline: Discipline, rate: int) -> None:
    """Send packets through a queue and a server of `rate` bit/s.

    A packet that arrives while the server is idle also passes through the queue.
    """
    work_left = Fraction(0)  # what rounding an end down to a nanosecond leaves
    busy: Packet | None = None
    end = 0

    def start(now: int, carried: Fraction) -> None:
        nonlocal busy, end, work_left
        busy = discipline.dequeue(now)
        if busy is not None:
            exact = Fraction(busy.size * 8 * 10**9, rate) + carried
            end = now + math.floor(exact)
            work_left = exact - math.floor(exact)

    def finish_until(now: int | None) -> None:
        while busy is not None and (now is None or end <= now):
            busy.left = end
            start(end, work_left)

    for packet in packets:
        finish_until(packet.at)
        discipline.enqueue(packet, packet.at)
        if busy is None:
            start(packet.at, Fraction(0))
    finish_until(None)


@dataclass
class CoDel:
    """CoDel: RFC 8289, section 5, with ECN as in section 5.4 of RFC 8290's companion code.

    An ECN-capable packet is marked and sent instead of being dropped.
    """

    limit: int
    target: int
    interval: int
    max_packet: int
    ecn: bool = False
    queue: deque[Packet] = field(default_factory=deque)
    first_above_time: int = 0
    drop_next: int = 0
    count: int = 0
    last_count: int = 0
    dropping: bool = False
    max_drops: float = math.inf  # at a dequeue

    def enqueue(self, packet: Packet, now: int) -> None:
        if len(self.queue) >= self.limit:
            packet.drop(OVERFLOW, now)
        else:
            self.queue.append(packet)

    def backlog(self) -> int:
        return sum(packet.size for packet in self.queue)

    def sojourn(self, packet: Packet, now: int) -> int:
        return now - packet.at

    def dodequeue(self, now: int) -> tuple[Packet | None, bool]:
        if not self.queue:
            self.first_above_time = 0
            return None, False
        packet = self.queue.popleft()
        ok_to_drop = False
        if self.sojourn(packet, now) < self.target or self.backlog() <= self.max_packet:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + self.interval
        elif self.is_above_for_an_interval(now):
            ok_to_drop = True
        return packet, ok_to_drop

    def control_law(self, at: int) -> int:
        return at + math.floor(self.interval / math.sqrt(self.count) + 0.5)

    def drop(self, packet: Packet, now: int) -> None:
        packet.drop(AQM_DROP, now)

    def is_above_for_an_interval(self, now: int) -> bool:
        return now >= self.first_above_time

    def start_count(self, count: int) -> None:
        self.count = count

    def count_drop(self) -> None:
        self.count += 1

    def dequeue(self, now: int) -> Packet | None:
        packet, ok_to_drop = self.dodequeue(now)
        if packet is None:
            self.dropping = False
            return None
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            drops = 0
            while self.dropping and now >= self.drop_next:
                drops += 1
                if drops > self.max_drops:
                    self.drop_next = self.control_law(now)
                    break
                self.count_drop()
                assert packet is not None
                if self.ecn and packet.mark():
                    self.drop_next = self.control_law(self.drop_next)
                    return packet
                self.drop(packet, now)
                packet, ok_to_drop = self.dodequeue(now)
                if ok_to_drop:
                    self.drop_next = self.control_law(self.drop_next)
                else:
                    self.dropping = False
        elif ok_to_drop:
            if not (self.ecn and packet.mark()):
                self.drop(packet, now)
                packet, _ = self.dodequeue(now)
            self.dropping = True
            delta = self.count - self.last_count
            recently = delta > 1 and now - self.drop_next < 16 * self.interval
            self.start_count(delta if recently else 1)
            self.drop_next = self.control_law(now)
            self.last_count = self.count
        return packet


class LinuxCoDel(CoDel):
    """CoDel in the arithmetic of Linux (include/net/codel_impl.h).

    Time is in units of 1,024 ns, and the reciprocal square root has 16 bits, with a Newton step per
    drop. A dequeue drops at most 256 packets.
    """

    def __init__(self, limit: int, target: int, interval: int, max_packet: int, ecn: bool) -> None:
        super().__init__(limit, target >> 10, interval >> 10, max_packet, ecn)
        self.inverse_root = 0
        self.now_ns = 0
        self.max_drops = 256

    def is_above_for_an_interval(self, now: int) -> bool:
        return now > self.first_above_time

    def newton_step(self) -> None:
        root = self.inverse_root << 16
        value = ((3 << 32) - self.count * (root * root >> 32)) % 2**64
        self.inverse_root = ((value >> 2) * root % 2**64 >> 47) % 2**16

    def control_law(self, at: int) -> int:
        return at + max(1, self.interval * (self.inverse_root << 16) >> 32)

    def start_count(self, count: int) -> None:
        self.count = count
        if count == 1:
            self.inverse_root = 0xFFFF
        else:
            self.newton_step()

    def count_drop(self) -> None:
        self.count += 1
        self.newton_step()

    def sojourn(self, packet: Packet, now: int) -> int:
        return now - (packet.at >> 10)

    def drop(self, packet: Packet, now: int) -> None:
        packet.drop(AQM_DROP, self.now_ns)

    def dequeue(self, now: int) -> Packet | None:
        self.now_ns = now
        return super().dequeue(now >> 10)


class FqCoDel:
    """FQ-CoDel: RFC 8290, section 4.

    As in Linux (net/sched/sch_fq_codel.c), CoDel compares the backlog of all flows with a packet's
    size, and counts drops at an overflow of the whole queue. `salt` is that of the hash; if it is
    None, the number of a flow is that of its queue.
    """

    def __init__(
        self, limit: int, quantum: int, flows: list[CoDel], salt: Philox | None = None
    ) -> None:
        self.limit, self.quantum, self.flows, self.salt = limit, quantum, flows, salt
        self.is_linux = isinstance(flows[0], LinuxCoDel)
        self.deficits = [0] * len(flows)
        self.new: list[int] = []
        self.old: list[int] = []
        if self.is_linux:
            for flow in self.flows:
                flow.backlog = self.backlog

    def find_queue(self, flow: int) -> int:
        if self.salt is None:
            return flow % len(self.flows)
        return (self.salt.draw(flow) >> 32) * len(self.flows) >> 32

    def backlog(self) -> int:
        return sum(packet.size for flow in self.flows for packet in flow.queue)

    def enqueue(self, packet: Packet, now: int) -> None:
        number = self.find_queue(packet.flow)
        self.flows[number].queue.append(packet)
        if number not in self.new + self.old:
            self.new.append(number)
            self.deficits[number] = self.quantum
        if sum(len(flow.queue) for flow in self.flows) > self.limit:
            self.drop_from_longest(now)

    def drop_from_longest(self, now: int) -> None:
        sizes = [sum(packet.size for packet in flow.queue) for flow in self.flows]
        longest = self.flows[sizes.index(max(sizes))]
        dropped = 0
        for _ in range(64):
            packet = longest.queue.popleft()
            packet.drop(OVERFLOW, now)
            dropped += packet.size
            if self.is_linux:
                longest.count += 1
            if dropped >= max(sizes) // 2:
                break

    def dequeue(self, now: int) -> Packet | None:
        while self.new or self.old:
            lists = self.new if self.new else self.old
            number = lists[0]
            if self.deficits[number] <= 0:
                self.deficits[number] += self.quantum
                self.old.append(lists.pop(0))
                continue
            packet = self.flows[number].dequeue(now)
            if packet is not None:
                self.deficits[number] -= packet.size
                return packet
            was_new = lists is self.new
            lists.pop(0)
            if was_new and self.old:
                self.old.append(number)
        return None


class Philox:
    """The model's random draws: Philox4x32-10 (Salmon et al., 2011)."""

    def __init__(self, seed: int, link: int, direction: int, purpose: int) -> None:
        self.key = (seed & 0xFFFFFFFF, seed >> 32)
        self.tail = (link, direction << 16 | purpose)

    def draw(self, index: int) -> int:
        a, b, c, d = index & 0xFFFFFFFF, index >> 32, *self.tail
        k, m = self.key
        for _ in range(10):
            first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
            a, b, c, d = (
                (second >> 32) ^ b ^ k,
                second & 0xFFFFFFFF,
                (first >> 32) ^ d ^ m,
                first & 0xFFFFFFFF,
            )
            k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
        return b << 32 | a


@dataclass
class Pie:
    """PIE: RFC 8033, section 4 and appendix B, with delays by timestamps and derandomization.

    The drop probability increases by at most 2 % per update.
    """

    limit: int
    target: int
    update: int
    max_burst: int
    mean_packet: int
    random: Philox
    ecn: bool = False
    alpha: float = 0.125
    beta: float = 1.25
    queue: deque[Packet] = field(default_factory=deque)
    drop_prob: float = 0.0
    accu_prob: float = 0.0
    qdelay: int = 0
    qdelay_old: int = 0
    draws: int = 0
    next_update: int = 0

    def __post_init__(self) -> None:
        self.burst_allowance = self.max_burst

    def status_update(self, now: int) -> None:
        while self.next_update <= now:
            self.next_update += self.update
            self.calculate_drop_prob()

    def change_of_drop_prob(self) -> float:
        p = self.alpha * ((self.qdelay - self.target) / 1e9) + self.beta * (
            (self.qdelay - self.qdelay_old) / 1e9
        )
        for bound, divisor in (
            (1e-6, 2048),
            (1e-5, 512),
            (1e-4, 128),
            (1e-3, 32),
            (1e-2, 8),
            (1e-1, 2),
        ):
            if self.drop_prob < bound:
                p /= divisor
                break
        if self.drop_prob >= 0.1 and p > 0.02:
            p = 0.02
        return p

    def calculate_drop_prob(self) -> None:
        self.drop_prob += self.change_of_drop_prob()
        if self.qdelay == 0 and self.qdelay_old == 0:
            self.drop_prob *= 1 - 1 / 64
        self.drop_prob = min(max(self.drop_prob, 0.0), 1.0)
        low = self.target // 2
        if self.drop_prob == 0 and self.qdelay < low and self.qdelay_old < low:
            self.burst_allowance, self.accu_prob = self.max_burst, 0.0
        else:
            self.burst_allowance = max(0, self.burst_allowance - self.update)
        self.qdelay_old = self.qdelay

    def is_small(self) -> bool:
        return self.qdelay_old < self.target // 2 and self.drop_prob < 0.2

    def is_short(self) -> bool:
        return sum(packet.size for packet in self.queue) <= 2 * self.mean_packet

    def drop_early(self) -> bool:
        if self.burst_allowance > 0:
            return False
        if self.is_small() or self.is_short():
            return False
        if self.drop_prob == 0:
            self.accu_prob = 0.0
        self.accu_prob += self.drop_prob
        if self.accu_prob < 0.85:
            return False
        if self.accu_prob >= 8.5:
            return True
        drawn = self.random.draw(self.draws)
        self.draws += 1
        if drawn < math.floor(min(self.drop_prob, 1.0) * 2**64):
            self.accu_prob = 0.0
            return True
        return False

    def enqueue(self, packet: Packet, now: int) -> None:
        self.status_update(now)
        if len(self.queue) >= self.limit:
            self.accu_prob = 0.0
            packet.drop(OVERFLOW, now)
        elif self.drop_early() and not (self.ecn and self.drop_prob <= 0.1 and packet.mark()):
            self.accu_prob = 0.0
            packet.drop(AQM_DROP, now)
        else:
            self.queue.append(packet)

    def dequeue(self, now: int) -> Packet | None:
        self.status_update(now)
        if not self.queue:
            return None
        packet = self.queue.popleft()
        self.qdelay = now - packet.at if self.queue else 0
        return packet


@dataclass
class LinuxPie(Pie):
    """PIE as in Linux (net/sched/sch_pie.c), computed in real numbers."""

    left: int | None = None  # when a packet left last

    def __post_init__(self) -> None:
        super().__post_init__()
        self.next_update = 500_000_000

    def calculate_drop_prob(self) -> None:
        p = self.change_of_drop_prob()
        if self.qdelay > 250_000_000:
            p += 0.02
        self.drop_prob += p
        if self.qdelay == self.qdelay_old == 0 and not self.queue:
            self.drop_prob *= 1 - 1 / 64
        self.drop_prob = max(self.drop_prob, 0.0)
        if self.drop_prob >= 256:  # of 64 bits, 56 are behind the point
            self.drop_prob = 1.0
        if self.drop_prob == 0 and max(self.qdelay, self.qdelay_old) < self.target // 2:
            self.burst_allowance, self.accu_prob, self.left = self.max_burst, 0.0, None
        self.qdelay_old = self.qdelay

    def is_small(self) -> bool:
        return self.qdelay < self.target // 2 and self.drop_prob < 0.2

    def is_short(self) -> bool:
        return sum(packet.size for packet in self.queue) < 2 * self.mean_packet

    def dequeue(self, now: int) -> Packet | None:
        packet = super().dequeue(now)
        if packet is not None:
            if self.left is not None:
                self.burst_allowance = max(0, self.burst_allowance - (now - self.left))
            self.left = now
        return packet


@dataclass
class DualPi2:
    """DualPI2: RFC 9332, appendix A.2, with k p bounded by 1.

    The scheduler is weighted round robin by credit, as in Linux.
    """

    limit: int
    target: int
    update: int
    packet: int
    alpha: float = 0.16
    beta: float = 3.2
    k: float = 2.0
    min_threshold: int = 800_000
    range: int = 400_000
    classic_weight: float = 0.1
    lq: deque[Packet] = field(default_factory=deque)
    cq: deque[Packet] = field(default_factory=deque)
    p: float = 0.0
    prevq: int = 0
    next_update: int = 0
    l_count: float = 0.0
    c_count: float = 0.0

    def __post_init__(self) -> None:
        self.reset_credit()

    def reset_credit(self) -> None:
        self.credit = self.packet * (2 * self.classic_weight - 1)

    def dualpi2_update(self, now: int) -> None:
        while self.next_update <= now:
            waited = [self.next_update - q[0].at if q else 0 for q in (self.lq, self.cq)]
            self.next_update += self.update
            curq = max(waited)
            self.p += self.alpha * ((curq - self.target) / 1e9) + self.beta * (
                (curq - self.prevq) / 1e9
            )
            self.p = min(max(self.p, 0.0), 1.0)
            self.prevq = curq

    def enqueue(self, packet: Packet, now: int) -> None:
        self.dualpi2_update(now)
        if len(self.lq) + len(self.cq) >= self.limit:
            packet.drop(OVERFLOW, now)
        else:
            (self.lq if packet.ecn in (ECT1, CE) else self.cq).append(packet)

    def recur_l(self, likelihood: float) -> bool:
        self.l_count += likelihood
        if self.l_count > 1:
            self.l_count -= 1
            return True
        return False

    def recur_c(self, likelihood: float) -> bool:
        self.c_count += likelihood
        if self.c_count > 1:
            self.c_count -= 1
            return True
        return False

    def laqm(self, qdelay: int) -> float:
        if not self.lq or qdelay <= self.min_threshold:
            return 0.0
        return min(1.0, (qdelay - self.min_threshold) / self.range)

    def dequeue(self, now: int) -> Packet | None:
        self.dualpi2_update(now)
        p_cl, p_c = min(1.0, self.k * self.p), self.p * self.p
        while self.lq or self.cq:
            if self.lq and (not self.cq or self.credit <= 0):
                packet = self.lq.popleft()
                if self.cq:
                    self.credit += self.classic_weight * packet.size
                if p_cl < 1:
                    if self.recur_l(max(self.laqm(now - packet.at), p_cl)):
                        packet.mark()
                else:
                    if self.recur_l(p_c):
                        packet.drop(AQM_DROP, now)
                        continue
                    packet.mark()
            else:
                packet = self.cq.popleft()
                if self.lq:
                    self.credit += (self.classic_weight - 1) * packet.size
                if self.recur_c(p_c):
                    if packet.ecn == NOT_ECT or p_c >= min(1 / self.k**2, 1):
                        packet.drop(AQM_DROP, now)
                        continue
                    packet.mark()
            return packet
        self.reset_credit()
        return None


@dataclass
class LinuxDualPi2(DualPi2):
    """DualPI2 as in Linux (net/sched/sch_dualpi2.c), computed in real numbers."""

    random: Philox | None = None
    step: int = 1_000_000
    draws: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.next_update = self.update

    def roll(self, probability: float) -> bool:
        assert self.random is not None
        drawn = self.random.draw(self.draws)
        self.draws += 1
        return drawn < math.floor(min(probability, 1.0) * 2**64)

    def must_drop(self, packet: Packet) -> bool:
        waiting = sum(each.size for queue in (self.lq, self.cq) for each in queue)
        if waiting < 2 * self.packet:
            return False
        overload = self.k * self.p > 1
        if packet.ecn not in (ECT1, CE):
            if self.roll(self.p) and self.roll(self.p):
                if overload or packet.ecn == NOT_ECT:
                    return True
                packet.mark()
        elif overload:
            if self.roll(self.p) and self.roll(self.p):
                return True
            packet.mark()
        elif self.roll(self.k * self.p):
            packet.mark()
        return False

    def dequeue(self, now: int) -> Packet | None:
        self.dualpi2_update(now)
        while self.lq or self.cq:
            both = bool(self.lq and self.cq)
            is_low_latency = bool(self.lq and (not self.cq or self.credit <= 0))
            packet = (self.lq if is_low_latency else self.cq).popleft()
            if self.must_drop(packet):
                packet.drop(AQM_DROP, now)
                continue
            if is_low_latency and now - packet.at > self.step:
                packet.mark()
            if both:
                weight = self.classic_weight - (0 if is_low_latency else 1)
                self.credit += weight * packet.size
            return packet
        self.reset_credit()
        return None
