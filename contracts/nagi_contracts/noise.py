# SPDX-License-Identifier: Apache-2.0
"""Why a run was late: from what agents recorded of their hosts to sentences for people.

Pure functions. What is recorded is nagi_contracts/records.py's Noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from nagi_contracts.records import Explanation, NodeRecord, Noise, NoiseCause, Verdict
from nagi_contracts.units import count_of

# From where on a source counts as noise. Below, a run on an idle machine comes to as much.
MIN_STOLEN = 0.02
MIN_BUSY = 0.75  # of what a hypervisor left
MIN_WAITING_CPU = 0.1
MIN_WAITING_MEMORY = 0.02
MIN_WAITING_IO = 0.2
MAX_NICE = 0.1  # with more, PSI says little: programs at nice 1 to 19 wait, as they should
_VIRTUAL = "run it in virtual time (--lab virtual)"


def explain(nodes: Iterable[NodeRecord]) -> list[Explanation]:
    """What the hosts of a run that was late recorded of noise. Where there was none, that is said;
    where none could be recorded (in virtual time), nothing is."""
    hosts: dict[str, tuple[str, Noise]] = {}
    for node in nodes:
        if node.noise is not None:
            hosts.setdefault(node.facts.boot_id or node.node, (node.node, node.noise))
    found = []
    for name, noise in hosts.values():
        where = f"{name}: " if len(hosts) > 1 else ""
        for cause, description, cure in _causes(noise):
            if not where:  # all of it is on one machine, which may as well be simulated
                cure += f", or {_VIRTUAL}"
            found.append(Explanation(cause=cause, description=where + description, cure=cure))
    if hosts and not found:
        found.append(_no_noise([noise for _, noise in hosts.values()]))
    return found


def _causes(noise: Noise) -> Iterator[tuple[NoiseCause, str, str]]:
    """Of one host: cause, sentence, cure."""
    end_others = "end other programs"
    stolen, busy, nice = noise.stolen or 0.0, noise.busy or 0.0, noise.nice or 0.0
    if stolen >= MIN_STOLEN:
        yield (
            "stolen time",
            f"the hypervisor took {_percent(stolen)} of the processors' time (stolen time)",
            "give the virtual machine processors of its own",
        )
    if noise.throttled and noise.throttled_s is not None:
        yield (
            "cgroup limit",
            f"a limit of the cgroup stopped programs for {noise.throttled_s:.2g} s, "
            f"{count_of(noise.throttled, 'time')}",
            "raise the limit (cpu.max of the cgroup, or of the container)",
        )
    if noise.frequency_throttled:
        yield (
            "hot processors",
            "processors were slowed down as they were hot, "
            f"{count_of(noise.frequency_throttled, 'time')}",
            "cool the machine",
        )
    if busy >= MIN_BUSY * (1 - stolen):
        yield (
            "busy processors",
            f"programs kept the processors busy for {_percent(busy)} of the time",
            f"{end_others}, or run fewer side by side (--jobs)",
        )
    elif (noise.cpu_some or 0.0) >= MIN_WAITING_CPU and nice < MAX_NICE:
        yield (
            "waiting for processors",
            f"programs waited for a processor {_percent(noise.cpu_some)} of the time "
            "(PSI cpu some)",
            f"{end_others}, or run fewer side by side (--jobs)",
        )
    if (noise.memory_some or 0.0) >= MIN_WAITING_MEMORY:
        yield (
            "waiting for memory",
            f"programs waited for memory {_percent(noise.memory_some)} of the time "
            "(PSI memory some)",
            f"{end_others}, or add memory",
        )
    if (noise.io_some or 0.0) >= MIN_WAITING_IO:
        yield (
            "waiting for input and output",
            f"programs waited for disks {_percent(noise.io_some)} of the time (PSI io some)",
            f"{end_others}",
        )


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f} %"


def _no_noise(noises: list[Noise]) -> Explanation:
    nice = max((noise.nice or 0.0 for noise in noises), default=0.0)
    description, cure = "no noise was recorded during the traffic", ""
    if nice >= MAX_NICE:
        description += (
            f" but programs at nice 1 to 19, which had {_percent(nice)} of the processors' time "
            "and should give way"
        )
        cure = "end them, and "
    cure += "look at interrupts and power saving of the hosts, and at `nagi doctor`"
    return Explanation(cause="no noise recorded", description=description, cure=cure)


def in_words(verdict: Verdict) -> list[str]:
    """A sentence an explanation, with its cure."""
    return [f"{each.description}; {each.cure}" for each in verdict.explanations]


def summarise(verdicts: Iterable[Verdict]) -> list[str]:
    """How many runs were late, how many of them each cause explains, and what would help most; no
    line if none was. A run may have several causes."""
    late = [each for each in verdicts if each.explanations]
    if not late:
        return []
    counts = Counter(
        cause for each in late for cause in {found.cause for found in each.explanations}
    )
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    causes = ", ".join(f"{cause} ({count})" for cause, count in ordered)
    first = next(
        found for each in late for found in each.explanations if found.cause == ordered[0][0]
    )
    return [
        f"{count_of(len(late), 'run')} missed the timing limits: {causes}",
        f"for example, {first.description}; {first.cure}",
    ]
