# SPDX-License-Identifier: Apache-2.0
"""nagi-link and `nagi plan` have one set of bounds: what one refuses, the other refuses, too."""

from __future__ import annotations

import copy
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nagi.backends.medium.spec import Medium
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.bounds import load_bounds
from nagi_contracts.errors import InputError
from nagi_contracts.paths import executable
from nagi_contracts.plan import RunPlan

Settings = dict[str, Any]
RATE = {"rate_bps": 10**7}


def _constant(key: str, name: str, unit: str) -> Callable[[Any], tuple[Settings, Settings]]:
    return lambda value: ({**RATE, key: value}, {name: f"{value} {unit}"})


def _inside(
    key: str, fields: Settings, name: str, own: Settings
) -> Callable[[Any], tuple[Settings, Settings]]:
    """Return a function that puts a value into an object of the settings.

    The value replaces `...` in `fields`, and the braces in texts of `own`.
    """

    def settings(value: Any) -> tuple[Settings, Settings]:
        ours = {k: v.format(value) if isinstance(v, str) else v for k, v in own.items()}
        return (
            {**RATE, key: {k: value if v is ... else v for k, v in fields.items()}},
            {name: ours},
        )

    return settings


def _queue(key: str, unit: str) -> Callable[[Any], tuple[Settings, Settings]]:
    """Set a queue at the highest rate: the planner refuses queues that take over a day to empty."""
    return lambda value: (
        {**RATE, "queue": {key: value}},
        {"queue": f"{value} {unit}", "rate": "1000 Gb/s"},
    )


def _step_rate(value: int) -> tuple[Settings, Settings]:
    return (
        {"rate_trace": {"steps": [[0, 10**6], [500, value]], "period_ns": 1000}},
        {
            "rate": None,
            "rate_trace": {
                "steps": {"0 ns": "1 Mb/s", "500 ns": f"{value} b/s"},
                "period": "1000 ns",
            },
        },
    )


def _period(value: int) -> tuple[Settings, Settings]:
    return (
        {**RATE, "delay_trace": {"steps": [[0, 5]], "period_ns": value}},
        {"delay": None, "delay_trace": {"steps": {"0 ns": "5 ns"}, "period": f"{value} ns"}},
    )


def _bdp(value: float) -> tuple[Settings, Settings]:
    queue = {"bdp": value, "base_rtt_ns": 10**7, "packet_bytes": 1052}
    return {**RATE, "queue": queue}, {"queue": f"{value!r} bdp"}


def _threshold(key: str, unit: str) -> Callable[[Any], tuple[Settings, Settings]]:
    return _inside(
        "mark", {key: ..., "weight": 0.5}, "mark", {"threshold": "{} " + unit, "weight": 0.5}
    )


def _discipline(
    name: str, key: str, own_key: str, own: str, others: dict[str, tuple[str, int]] | None = None
) -> Callable[[Any], tuple[Settings, Settings]]:
    """Return the settings of a queue discipline for nagi-link and for the planner.

    `others` maps a key of nagi-link to the planner's key and a number of nanoseconds for both.
    """
    others = others or {}
    return _inside(
        "queue",
        {"discipline": name, "packets": 5, key: ...} | {k: ns for k, (_, ns) in others.items()},
        "queue",
        {"discipline": name, "limit": "5 packets", own_key: own}
        | {theirs: f"{ns} ns" for theirs, ns in others.values()},
    )


def _loss(model: str, key: str, more: Settings) -> Callable[[Any], tuple[Settings, Settings]]:
    return _inside(
        "loss", {"model": model, key: ..., **more}, "loss", {"model": model, "rate": "{!r}"}
    )


# A bound -> the settings with a value, for a direction of nagi-link and for an experiment's link.
PLACES: dict[str, Callable[[Any], tuple[Settings, Settings]]] = {
    "rate_bps": lambda value: ({"rate_bps": value}, {"rate": f"{value} b/s"}),
    "step_rate_bps": _step_rate,
    "overhead_bytes": _constant("overhead_bytes", "overhead", "bytes"),
    "packet_bytes": _inside(
        "loss",
        {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": ...},
        "loss",
        {"model": "poisson", "rate": 0.01, "packet": "{} bytes"},
    ),
    "delay_ns": _constant("delay_ns", "delay", "ns"),
    "jitter_ns": _inside(
        "jitter",
        {"distribution": "uniform", "half_width_ns": ...},
        "jitter",
        {"distribution": "uniform", "half_width": "{} ns"},
    ),
    "period_ns": _period,
    "queue_packets": _queue("packets", "packets"),
    "queue_bytes": _queue("bytes", "bytes"),
    "queue_bdp": _bdp,
    "mark_threshold_packets": _threshold("threshold_packets", "packets"),
    "mark_threshold_bytes": _threshold("threshold_bytes", "bytes"),
    "mark_weight": _inside(
        "mark",
        {"threshold_packets": 5, "weight": ...},
        "mark",
        {"threshold": "5 packets", "weight": "{!r}"},
    ),
    "probability": _loss("bernoulli", "probability", {}),
    "bit_error_rate": _loss("bernoulli_bit", "bit_error_rate", {}),
    "packet_loss_rate": _loss("poisson", "packet_loss_rate", {"packet_bytes": 1052}),
    "sojourn_ns": _inside(
        "loss",
        {"model": "markov", "good_sojourn_ns": ..., "bad_sojourn_ns": 10**6},
        "loss",
        {"model": "markov", "good": "{} ns", "bad": "1 ms"},
    ),
    "burst_bytes": _constant("burst_bytes", "burst", "bytes"),
    "correlation": _inside(
        "jitter",
        {"distribution": "normal", "deviation_ns": 5, "correlation": ...},
        "jitter",
        {"distribution": "normal", "deviation": "5 ns", "correlation": "{!r}"},
    ),
    "aqm_target_ns": _discipline(
        "codel", "target_ns", "target", "{} ns", {"interval_ns": ("interval", 60 * 10**9)}
    ),
    "aqm_interval_ns": _discipline(
        "codel", "interval_ns", "interval", "{} ns", {"target_ns": ("target", 1000)}
    ),
    "aqm_update_ns": _discipline("pie", "update_ns", "update", "{} ns"),
    "aqm_gain_hz": _discipline("pie", "alpha_hz", "alpha", "{!r} Hz"),
    "aqm_coupling": lambda value: (
        {**RATE, "queue": {"discipline": "dualpi2", "packets": 5, "coupling": value}},
        {"queue": {"discipline": "dualpi2", "limit": "5 packets", "coupling": value}},
    ),
    "queue_flows": lambda value: (
        {**RATE, "queue": {"discipline": "fq_codel", "packets": 5, "flows": value}},
        {"queue": {"discipline": "fq_codel", "limit": "5 packets", "flows": value}},
    ),
    "arq_retries": lambda value: (
        {**RATE, "arq": {"retries": value, "feedback_ns": 1}},
        {"arq": {"retries": value, "feedback": "1 ns"}},
    ),
    "arq_feedback_ns": _inside(
        "arq", {"retries": 1, "feedback_ns": ...}, "arq", {"retries": 1, "feedback": "{} ns"}
    ),
}
SDR = {
    "model": "sdr",
    "snr_db": 5,
    "curves": [{"packet_bytes": 40, "snr_db": [1, 2], "per": [1, 0]}],
}
# What an experiment cannot say: its planner resolves BDPs itself, mahimahi's bytes are fixed, and
# its loss traces, tables of quantiles and of radios are files, which end sooner.
OF_NAGI_LINK_ALONE: dict[str, Callable[[Any], Settings]] = {
    "base_rtt_ns": lambda value: {
        "rate_bps": 8,
        "queue": {"bdp": 1, "base_rtt_ns": value, "packet_bytes": 1},
    },
    "opportunity_bytes": lambda value: {
        "rate_trace": {
            "opportunities_ns": [0],
            "bytes": value,
            "period_ns": 10**9 if value < 1000 else 3600 * 10**9,  # for a possible mean
        }
    },
    "min_snr_db": lambda value: {
        "rate_bps": 8,
        "arq": {"retries": 1, "feedback_ns": 1},
        "rate_adaptation": {
            "kind": "snr_table",
            "modes": [{"rate_bps": 8, "overhead_bytes": 0}],
            "min_snr_db": [value],
        },
    },
    "quantile": lambda value: {
        "jitter": {"distribution": "table", "deviation_ns": 5, "quantiles": [value]}
    },
    "snr_db": lambda value: {"loss": {**SDR, "snr_db": value}},
    "doppler_hz": lambda value: {
        "loss": {**SDR, "fading": {"kind": "rayleigh", "doppler_hz": value}}
    },
    "shadowing_db": lambda value: {
        "loss": {**SDR, "shadowing": {"deviation_db": value, "decorrelation_ns": 10**9}}
    },
    "decorrelation_ns": lambda value: {
        "loss": {**SDR, "shadowing": {"deviation_db": 1, "decorrelation_ns": value}}
    },
    "loss_trace_packets": lambda value: {
        "rate_bps": 8,
        "loss": {"model": "trace", "lost": [], "length": value},
    },
}
RANGES, SINR = {"reach": {"by": "ranges"}}, {"reach": {"by": "sinr"}}
# A bound of media -> its path in a medium of an experiment, its format there, further settings of
# the medium, and its path in a medium of nagi-link.
OF_MEDIA: dict[str, tuple[str, str, Settings, str]] = {
    "position_m": ("stations.S.at.0", "{!r} m", {}, "stations.0.position_m.0"),
    "range_m": ("reach.interference", "{!r} m", RANGES, "reach.interference_m"),
    "power_dbm": ("reach.noise", "{!r} dBm", SINR, "reach.noise_dbm"),
    "ratio_db": ("reach.reference_loss", "{!r} dB", SINR, "reach.reference_loss_db"),
    "path_loss_exponent": ("reach.path_loss_exponent", "", SINR, "reach.path_loss_exponent"),
    "retry_limit": ("long_retry_limit", "", {}, "long_retry_limit"),
    "contention_window": ("cw_max", "", {"cw_min": 0}, "cw_max"),
    "rts_threshold_bytes": ("rts_threshold", "{} bytes", {}, "rts_threshold_bytes"),
}


def answer_of_nagi_link(direction: Settings, directory: Path) -> str | None:
    """Return why nagi-link refuses a direction, or None if nagi-link accepts it."""
    link = {"name": "wired", "id": 0, "a": "e0", "b": "e1", "forward": direction, "backward": {}}
    return check({"links": [link]}, directory)


def check(settings: Settings, directory: Path) -> str | None:
    """Return why nagi-link refuses settings, or None if nagi-link accepts them."""
    config = directory / "config.json"
    config.write_text(json.dumps({"schema_version": 1, "seed": 0, **settings}))
    done = subprocess.run(
        [executable("nagi-link"), "check", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == (2 if done.stderr else 0)
    return done.stderr or None


def experiment_with(link: Settings, directory: Path) -> Path:
    wired = {"between": ["S", "D"], "rate": "10 Mb/s", "delay": "5 ms", **link}
    experiment = {
        "schema_version": 1,
        "name": "bounds",
        "title": "Bounds",
        "seed": 1,
        "nodes": {"S": "host", "D": "host"},
        "links": {"wired": {key: value for key, value in wired.items() if value is not None}},
        "flows": {"bulk": {"from": "S", "to": "D", "scheme": "$scheme"}},
        "duration": "10 s",
        "matrix": {"scheme": ["cubic"]},
        "report": {"x": "scheme"},
    }
    path = directory / "experiment.yaml"
    path.write_text(json.dumps(experiment, indent=1))
    return path


def put(settings: Any, place: str, value: Any) -> None:
    """Replace the value at `place`, a path of keys and indices joined by dots."""
    *way, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    for step in way:
        settings = settings[step]
    settings[last] = value


def experiment_with_medium(key: str, value: Any, directory: Path) -> Path:
    """Write an experiment with a medium; both stations hear each other at one position."""
    place, text, more, _ = OF_MEDIA[key]
    path = experiment_with({}, directory)
    experiment = json.loads(path.read_text())
    del experiment["links"]
    medium = experiment.setdefault("media", {})["air"] = {
        "phy": "802.11b",
        "data_rate": "11 Mb/s",
        "stations": {"S": {"at": ["0 m", "0 m"]}, "D": {"at": ["0 m", "0 m"]}},
        **copy.deepcopy(more),
    }
    if key == "position_m":  # the other is there, too
        medium["stations"]["D"]["at"][0] = text.format(value)
    put(medium, place, text.format(value) if text else value)
    path.write_text(json.dumps(experiment, indent=1))
    return path


def planned(link: Settings, directory: Path) -> RunPlan:
    """Return the only plan of an experiment with this link.

    Raises:
        InputError: The experiment is refused.
    """
    (point,) = read_experiment(experiment_with(link, directory), None)
    (plan,) = plan_runs(point, None)
    return plan


def answer_of_planner(link: Settings, directory: Path) -> InputError | None:
    try:
        plan = planned(link, directory)
    except InputError as error:
        return error
    forward = plan.links[0].forward.model_dump(mode="json", exclude_none=True)
    assert answer_of_nagi_link(forward, directory) is None
    return None


def values_of(key: str) -> list[tuple[Any, bool]]:
    """Return values at the bounds and just beyond them, and whether each is permitted."""
    bound = load_bounds()[key]
    if bound.type == "integer":
        below, above = bound.minimum - 1, bound.maximum + 1
    else:
        below, above = (
            math.nextafter(bound.minimum, -math.inf),
            math.nextafter(bound.maximum, math.inf),
        )
    return [(bound.minimum, True), (below, False), (bound.maximum, True), (above, False)]


def test_every_bound_is_tried():
    assert set(load_bounds()) == set(PLACES) | set(OF_NAGI_LINK_ALONE) | set(OF_MEDIA)


@pytest.mark.parametrize("key", OF_MEDIA)
def test_they_give_the_same_answer_of_media(tmp_path, key):
    place, _, _, place_there = OF_MEDIA[key]
    path = experiment_with_medium(key, values_of(key)[2][0], tmp_path)
    medium = read_experiment(path, None)[0].experiment.get_section(Medium)["air"]
    stations = {name: {"name": name, "interface": name} for name in medium.stations}
    theirs = {
        "name": "air",
        "id": 0,
        "reach": medium.reach.to_plan(list(stations)).model_dump(exclude_none=True),
        "stations": [{**each, "position_m": [0, 0]} for each in stations.values()],
        "cw_min": 0,
        **{name: each for name, each in medium.to_timing().items() if each is not None},
    }
    for value, possible in values_of(key):
        put(theirs, place_there, value)
        answer = check({"links": [], "media": [theirs]}, tmp_path)
        assert (answer is None) == possible, (value, answer)
        path = experiment_with_medium(key, value, tmp_path)
        if possible:
            assert read_experiment(path, None)
            continue
        with pytest.raises(InputError) as refused:
            read_experiment(path, None)
        found = refused.value.problems
        assert any(each.key == f"media.air.{place}" and each.line and each.cure for each in found)


@pytest.mark.parametrize("key", PLACES)
def test_nagi_link_and_the_planner_give_the_same_answer(tmp_path, key):
    for value, possible in values_of(key):
        direction, link = PLACES[key](value)
        theirs = answer_of_nagi_link(direction, tmp_path)
        ours = answer_of_planner(link, tmp_path)
        assert (theirs is None, ours is None) == (possible, possible), (value, theirs, ours)
        if ours is None:
            continue
        for problem in ours.problems:
            assert problem.file and problem.what and problem.cure
            assert problem.key.startswith("links.wired") and problem.line > 0


@pytest.mark.parametrize("discipline", ["codel", "fq_codel"])
@pytest.mark.parametrize(("target_ns", "possible"), [(10**8, True), (10**8 + 1, False)])
def test_a_target_of_codel_is_not_above_its_interval(tmp_path, discipline, target_ns, possible):
    """Check the target against the default interval of 100 ms (RFC 8289, section 4.3)."""
    direction, link = _discipline(discipline, "target_ns", "target", "{} ns")(target_ns)
    assert (answer_of_nagi_link(direction, tmp_path) is None) == possible
    assert (answer_of_planner(link, tmp_path) is None) == possible


@pytest.mark.parametrize("key", OF_NAGI_LINK_ALONE)
def test_nagi_link_alone(tmp_path, key):
    for value, possible in values_of(key):
        refused = answer_of_nagi_link(OF_NAGI_LINK_ALONE[key](value), tmp_path)
        assert (refused is None) == possible, (value, refused)


@pytest.mark.parametrize(
    ("link", "key", "complaint"),
    [
        ({"rate": "2000 Gb/s"}, "rate", "a rate of 2000 Gb/s is too large; give at most 1000 Gb/s"),
        ({"queue": "1e15 B"}, "queue", "a size of 1e15 B is too large; give at most 1099511627776"),
        ({"overhead": "1 MB"}, "overhead", "a size of 1 MB is too large; give at most 65535 bytes"),
        (
            {"mark": {"threshold": "5 packets", "weight": 1e-30}},
            "mark.weight",
            "a weight of 1e-30 ignores the queue; give more, like 0.002",
        ),
        ({"delay": "2 h"}, "delay", "a duration of 2 h is too large; give at most 3600 s"),
        (
            {"queue": "2000000 bdp"},
            "queue",
            "a queue of 2000000 bdp is out of range; give 0.000001 to 1000000 bdp",
        ),
        # 10^12 x 8 bits at 10 Mb/s are 800,000 s.
        ({"queue": "1e12 B"}, "queue", "the queue takes 222.2 h to empty, and runs wait for it"),
        # 10^6 x 1 Tb/s x 2 h / 8 bits are 8.5 x 10^17 packets.
        (
            {"rate": "1000 Gb/s", "delay": "1 h", "queue": "1000000 bdp"},
            "queue",
            "give less: at most 1099511627776 packets",
        ),
        (
            {
                "rate": "1000 Gb/s",
                "delay": "1 h",
                "mark": {"threshold": "1000000 bdp", "weight": 1},
            },
            "mark",
            "give less: at most 1099511627776 packets",
        ),
        (
            {
                "rate": None,
                "rate_trace": {"steps": {"0 s": "1 b/s", "1 ns": "0 b/s"}, "period": "1 s"},
            },
            "rate_trace",
            "less than 1 b/s on average; give more, or a shorter period",
        ),
    ],
)
def test_refusals_name_the_place_and_the_cure(tmp_path, link, key, complaint):
    with pytest.raises(InputError) as refused:
        planned(link, tmp_path)
    (problem,) = refused.value.problems
    assert problem.key == f"links.wired.{key}"
    text = (tmp_path / "experiment.yaml").read_text().splitlines()
    assert f'"{key.split(".")[-1]}"' in text[problem.line - 1]
    assert complaint in str(problem)


def test_a_mahimahi_trace_beyond_any_interface_is_refused(tmp_path):
    # 90,000 x 1,504 bytes a millisecond are 1.08 Tb/s.
    (tmp_path / "fast.trace").write_text("1\n" * 90_000)
    trace = {"rate": None, "rate_trace": {"file": "fast.trace", "format": "mahimahi"}}
    with pytest.raises(InputError, match=r"more than 1000 Gb/s on average; give less, or a longer"):
        planned(trace, tmp_path)
    direction = {
        "rate_trace": {"opportunities_ns": [10**6] * 90_000, "bytes": 1504, "period_ns": 10**6}
    }
    refused = answer_of_nagi_link(direction, tmp_path)
    assert refused is not None and "more than 1000000000000 bit/s on average" in refused
