# SPDX-License-Identifier: Apache-2.0
"""nagi-traffic by its command line: what it refuses, and both ends over loopback."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from nagi_contracts.applications import ApplicationEnds
from nagi_contracts.paths import executable

PROGRAM = str(executable("nagi-traffic"))
TIMEOUT_S = 30


def free_port(kind: int) -> int:
    with closing(socket.socket(socket.AF_INET, kind)) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port: int, is_udp: bool) -> bool:
    """By proc_net_tcp(5)."""
    table = Path(f"/proc/net/{'udp' if is_udp else 'tcp'}").read_text()
    rows = [line.split() for line in table.splitlines()[1:]]
    states = ("07",) if is_udp else ("0A",)
    return any(row[1].endswith(f":{port:04X}") and row[3] in states for row in rows)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def both_ends(
    started: list[subprocess.Popen[str]],
    application: str,
    *options: str,
    client_lasts_s: float | None = None,
) -> ApplicationEnds:
    """Run both ends as results_of() does."""
    client, server = results_of(started, application, *options, client_lasts_s=client_lasts_s)
    return ApplicationEnds.model_validate({"flow": "f", "client": client, "server": server})


def results_of(
    started: list[subprocess.Popen[str]],
    application: str,
    *options: str,
    client_lasts_s: float | None = None,
) -> list[dict[str, Any]]:
    """Run both ends; the client until it is over, or gets SIGTERM. The server gets it then."""
    is_udp = application == "cbr" or "udp" in options
    port = free_port(socket.SOCK_DGRAM if is_udp else socket.SOCK_STREAM)
    address = ["--address", "127.0.0.1", "--port", str(port)]
    ends: list[dict[str, Any]] = []
    for role in ("server", "client"):
        line = [PROGRAM, application, role, *address, *options]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        started.append(process)
        while role == "server" and not listens(port, is_udp):
            assert process.poll() is None
    server, client = started
    for process, lasts in ((client, client_lasts_s), (server, None)):
        if process is server and application in ("bulk", "transfer", "playback"):
            lasts = None
        elif process is server:
            lasts = 0.0
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S if lasts is None else lasts)
        except subprocess.TimeoutExpired:
            assert lasts is not None
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0
        ends.append(json.loads(said))
    return ends


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "A subcommand is required"),
        (("transfer",), "A subcommand is required"),
        (("transfer", "client"), "--address is required"),
        (("transfer", "client", "--size", "5"), "--address is required"),
        (("transfer", "client", "--size", "5 miles"), "'miles' is no unit of a size"),
        (("transfer", "client", "--size", "0 MB"), "'0 MB' is too small; give more than 0"),
        (
            ("playback", "server", "--rate", "fast"),
            "is no rate; write a rate such as '1 Mb/s'",
        ),
        (("cbr", "client", "--codec", "opus"), "opus not in {g711}"),
        (("onoff", "client", "--shape", "1"), "not in range"),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(arguments, said):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("nagi-traffic: ") and said in line


HERE = ("--address", "127.0.0.1", "--port", "1024")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("transfer", "client", *HERE[2:], "--address", "host", "--size", "1"), "is no IP address"),
        (("cbr", "client", *HERE, "--rate", "1Mb/s"), "give --rate and --payload, or --codec"),
        (("cbr", "client", *HERE, "--rate", "1Mb/s", "--payload", "19"), "give 20 to 65507"),
        (("cbr", "client", *HERE, "--codec", "g711", "--search", "1s"), "give no --search"),
        (("poisson", "client", *HERE, "--interval", "1s"), "no size; give --size"),
        (
            ("poisson", "client", *HERE, "--interval", "1s", "--sizes", "pareto", "--min", "9"),
            "give --min and a larger --max",
        ),
        (
            ("playback", "server", *HERE, "--rate", "1b/s", "--interval", "1ms"),
            "less than a byte is played at each attempt",
        ),
        (
            ("transfer", "client", *HERE, "--size", "1", "--congestion-control", "none"),
            "congestion control 'none' cannot be used",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, said):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_nobody_listens():
    port = free_port(socket.SOCK_STREAM)
    line = [PROGRAM, "transfer", "client", *HERE[:2], "--port", str(port), "--size", "1"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Connection refused" in done.stderr


def test_bulk_data_is_sent_until_sigterm_and_all_of_it_arrives(started):
    client, server = results_of(started, "bulk", client_lasts_s=0.2)
    assert client["sent_bytes"] == server["received_bytes"] > 10**6
    assert (client["ended"], server["ended"]) == ("stopped", "complete")


def test_a_transfer_is_complete_when_all_is_acknowledged(started):
    found = both_ends(started, "transfer", "--size", "5MiB", "--congestion-control", "reno")
    assert found.client.completed and found.client.completion_s > found.client.connect_s
    assert found.server.received_bytes == 5 * 2**20
    assert (found.client.ended, found.server.ended) == ("complete", "complete")


def test_what_takes_longer_than_its_maximum_duration_is_given_up(started):
    """Give up a transfer whose server is stopped, so that no more is sent than kernels buffer."""
    port = free_port(socket.SOCK_STREAM)
    with closing(socket.create_server(("127.0.0.1", port))):
        line = [PROGRAM, "transfer", "client", *HERE[:2], "--port", str(port), "--size", "1GB"]
        line += ["--max-duration", "300ms"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    found = json.loads(done.stdout)
    assert (found["completed"], found["completion_s"]) == (False, None)
    assert found["ended"] == "maximum duration"


def test_sigterm_ends_it_with_its_result(started):
    found = both_ends(
        started, "playback", "--rate", "1Mb/s", "--interval", "10ms", client_lasts_s=0.5
    )
    assert found.client.ended == "stopped" and found.client.sent_bytes % 1250 == 0
    assert found.server.ended in ("connection broken", "complete", "stopped")
    assert 0 < found.server.read_bytes <= found.client.sent_bytes


def test_a_stream_is_played_to_its_end(started):
    options = ("--rate", "10Mb/s", "--interval", "4ms", "--size", "123457")
    found = both_ends(started, "playback", *options)
    assert found.server.read_bytes == 123_457
    # 24 chunks of 5,000 bytes and the rest; a busy machine may miss some at first.
    assert found.server.successes == 25 <= found.server.attempts
    assert found.server.success_share == found.server.successes / found.server.attempts


def test_datagrams_are_counted(started):
    options = ("--rate", "4Mb/s", "--payload", "100", "--duration", "100ms")
    found = both_ends(started, "cbr", *options)
    # 128 bytes at 4 Mb/s: one every 0.256 ms.
    assert found.client.packets_sent == 391 == found.server.packets_received
    assert found.server.packets_lost == 0 and found.server.voice is None


def test_a_rate_is_looked_for_before_data_is_sent(started):
    options = ("--rate", "4Mb/s", "--payload", "100", "--search", "500ms", "--duration", "100ms")
    found = both_ends(started, "cbr", *options)
    sent_bps = [sent for sent, _ in found.client.probes_bps]
    assert 4e6 >= max(sent_bps) >= found.client.rate_bps > 0
    assert sent_bps[0] < 4e6  # a rate far below is tried first
    # Datagrams of the search are no data.
    assert (
        found.client.packets_sent == found.server.packets_received == found.server.packets_expected
    )


def test_a_search_without_an_answer_fails():
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(("127.0.0.1", 0))
        port = str(silent.getsockname()[1])
        line = [PROGRAM, "cbr", "client", *HERE[:2], "--port", port, "--rate", "1Mb/s"]
        line += ["--payload", "100", "--search", "300ms"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "had no answer from the server" in done.stderr


@pytest.mark.parametrize(
    "application, options",
    [
        ("poisson", ("--interval", "10ms", "--sizes", "exponential", "--size", "20kB")),
        ("request-response", ("--sizes", "pareto", "--min", "1kB", "--max", "1MB")),
    ],
)
def test_a_seed_gives_the_same_sizes(application, options, started):
    def sizes(seed: str) -> list[int]:
        started.clear()
        given = (*options, "--seed", seed, "--stream", "x")
        client = both_ends(started, application, *given, client_lasts_s=0.5).client
        found = client.transfers if application == "poisson" else client.requests
        return [size for _, size, _ in sorted(found)]

    first, second, other = sizes("1"), sizes("1"), sizes("2")
    count = min(len(first), len(second), len(other), 10)
    assert count >= 3 and first[:count] == second[:count] != other[:count]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_source_that_is_on_and_off_sends_what_it_says(transport, started):
    options = (
        "--rate",
        "1Mb/s",
        "--on-time",
        "50ms",
        "--off-time",
        "20ms",
        "--transport",
        transport,
    )
    found = both_ends(started, "onoff", *options, client_lasts_s=0.5)
    assert found.client.sent_bytes == found.client.offered_bytes > 0
    assert found.server.received_bytes == found.client.sent_bytes
    assert found.client.packets_sent == found.server.packets_received  # null by TCP


def test_tokens_are_used_at_their_rate(started):
    options = ("--depth", "20kB", "--tokens", "10", "--interval", "10ms")
    found = both_ends(started, "token-bucket", *options, client_lasts_s=0.5).client
    assert found.tokens_consumed >= 20  # those that are there at first
    assert found.tokens_per_rtt is not None
    lasted_s = sum(rtt for _, rtt, _ in found.rtts)
    assert found.tokens_consumed + found.tokens_lost <= 20 + 10 * (lasted_s + 0.1) / 0.01
