# SPDX-License-Identifier: Apache-2.0
"""Explanations of late runs, which missed the timing limits of the certificate.

The explanations follow from Noise: the activity of other programs and of hypervisors that agents
record of their hosts (nagi_contracts/records/node.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from nagi_contracts.records import Explanation, NodeRecord, Noise, NoiseCause, Verdict
from nagi_contracts.units import format_count

# Thresholds above which an activity counts as noise. A run on an idle machine stays below them.
MIN_STOLEN = 0.02
MIN_BUSY = 0.75  # share of the processor time that a hypervisor did not take
MIN_WAITING_CPU = 0.1
MIN_WAITING_MEMORY = 0.02
MIN_WAITING_IO = 0.2
MAX_NICE = 0.1  # above this share, PSI has little meaning, as programs at nice 1 to 19 always wait
_VIRTUAL = "run it in virtual time (--lab virtual)"


def explain(nodes: Iterable[NodeRecord]) -> list[Explanation]:
    """Explain a late run by the noise that its hosts recorded.

    Of several nodes on the same machine, only the first one counts. With several machines, each
    explanation begins with the name of a node. If no host had noise, the only explanation says that
    no noise was recorded. If noise cannot be recorded (in virtual time), the list is empty.
    """
    hosts: dict[str, tuple[str, Noise]] = {}
    for node in nodes:
        if node.noise is not None:
            hosts.setdefault(node.facts.boot_id or node.node, (node.node, node.noise))
    explanations = []
    for name, noise in hosts.values():
        prefix = f"{name}: " if len(hosts) > 1 else ""
        for cause, description, cure in _find_causes(noise):
            if len(hosts) == 1:  # all nodes are on one machine, so the virtual lab is possible
                cure += f", or {_VIRTUAL}"
            explanations.append(
                Explanation(cause=cause, description=prefix + description, cure=cure)
            )
    if hosts and not explanations:
        explanations.append(_explain_without_noise([noise for _, noise in hosts.values()]))
    return explanations


def _find_causes(noise: Noise) -> Iterator[tuple[NoiseCause, str, str]]:
    """Yield (cause, sentence, cure) for each kind of noise above its threshold on one host."""
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
            f"{format_count(noise.throttled, 'time')}",
            "raise the limit (cpu.max of the cgroup, or of the container)",
        )
    if noise.frequency_throttled:
        yield (
            "hot processors",
            "processors were slowed down because they were hot, "
            f"{format_count(noise.frequency_throttled, 'time')}",
            "cool the machine",
        )
    if busy >= MIN_BUSY * (1 - stolen):
        yield (
            "busy processors",
            f"programs kept the processors busy for {_percent(busy)} of the time",
            f"{end_others}, or execute fewer runs side by side (--jobs)",
        )
    elif (noise.cpu_some or 0.0) >= MIN_WAITING_CPU and nice < MAX_NICE:
        yield (
            "waiting for processors",
            f"programs waited for a processor {_percent(noise.cpu_some)} of the time "
            "(PSI cpu some)",
            f"{end_others}, or execute fewer runs side by side (--jobs)",
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


def _explain_without_noise(noises: list[Noise]) -> Explanation:
    """Explain a late run whose hosts recorded no noise; name programs at nice 1 to 19, if any.

    Such programs are no noise, because programs of ordinary priority have precedence over them.
    """
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


def describe_explanations(verdict: Verdict) -> list[str]:
    """Return one line per explanation of a verdict: the noise and the cure."""
    return [
        f"{explanation.description}; {explanation.cure}" for explanation in verdict.explanations
    ]


def summarise(verdicts: Iterable[Verdict]) -> list[str]:
    """Summarise late runs in two lines: the number of late runs per cause, and an example.

    The most frequent cause comes first; causes of equally many runs are in alphabetical order. A
    run may have several causes. The example is an explanation with the first cause, and its cure.
    If no run was late, return an empty list.
    """
    late_verdicts = [verdict for verdict in verdicts if verdict.explanations]
    if not late_verdicts:
        return []
    counts = Counter(
        cause
        for verdict in late_verdicts
        for cause in {explanation.cause for explanation in verdict.explanations}
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    causes = ", ".join(f"{cause} ({count})" for cause, count in ordered)
    example = next(
        explanation
        for verdict in late_verdicts
        for explanation in verdict.explanations
        if explanation.cause == ordered[0][0]
    )
    return [
        f"{format_count(len(late_verdicts), 'run')} missed the timing limits: {causes}",
        f"for example, {example.description}; {example.cure}",
    ]
