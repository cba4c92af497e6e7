# SPDX-License-Identifier: Apache-2.0
"""The command `nagi metrics`, with captures of any origin."""

from __future__ import annotations

import csv
import gzip
import io
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from made_captures import MAC, ack, data, handshake, pcap, pcapng
from nagi.cli.main import make_app
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS, executable
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether
from typer.testing import CliRunner

(RUN,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
SENDER, RECEIVER = RUN / "client.radio.pcap", RUN / "server.core.pcap"


def run_metrics(*arguments, status=0, **options):
    """Return the output of the command, or its error."""
    argv = ["metrics", *map(str, arguments)]
    result = CliRunner().invoke(make_app(), argv, env={"COLUMNS": "120"}, **options)
    if isinstance(result.exception, InputError):
        assert status == 2
        return str(result.exception)
    assert result.exit_code == status, result.output
    return result.output


def run_metrics_as_json(*arguments, **options):
    return json.loads(run_metrics(*arguments, "--json", **options))


def test_both_directions_of_a_capture():
    output = run_metrics(RECEIVER, "--bottleneck", "1Mbps")
    assert {"0>", "0<", "1>", "1<"} <= {line.split(" ")[0] for line in output.splitlines()}
    assert "/ ceiling" in output and "captured at" in output
    assert "* captured at the sender: AG counts payload that was sent" in output
    (file_result,) = run_metrics_as_json(RECEIVER, "--bottleneck", "1 Mb/s")["files"]
    recorded = json.loads((RUN / "metrics.json").read_text())["rows"]
    up = next(row for row in file_result["tcp"] if row["destination_port"] == 5001)
    assert up["captured_at"] == "destination" and up["mss"] == 1012
    assert up["agi"] == pytest.approx(up["goodput_bps"] / 1e6)
    assert {"in_flight_max_bytes", "rtt_p95_s", "window_mean_bytes"} <= up.keys()
    assert recorded[0]["goodput_bps"] == pytest.approx(up["goodput_bps"], rel=0.1)


def test_with_the_capture_at_the_sender_there_are_losses_and_delays():
    output = run_metrics(RECEIVER, "--sender", SENDER, "--bottleneck", "1Mbit")
    assert "bottleneck 1 Mb/s" in output and "clocks: " in output
    file_result = run_metrics_as_json(
        RECEIVER, "--sender", SENDER, "--from", "500ms", "--to", "1.5 s"
    )
    assert all(row["at_receiver"]["interval_s"] == 1 for row in file_result["connections"])


def test_an_interval_is_measured_alone():
    (file_result,) = run_metrics_as_json(RECEIVER, "--from", "500ms", "--to", "1.5 s")["files"]
    assert {row["interval_s"] for row in file_result["tcp"]} == {1.0}
    (whole,) = run_metrics_as_json(RECEIVER)["files"]
    assert sum(row["first_time_bytes_inside"] for row in file_result["tcp"]) < sum(
        row["first_time_bytes"] for row in whole["tcp"]
    )


def make_conversation(port, size, acknowledged=None):
    """Make a connection to `port` with one segment.

    The segment is acknowledged, unless `acknowledged` is given.
    """
    acknowledgement = 1 + size if acknowledged is None else acknowledged
    packets = [*handshake(dport=port), data(1, size, dport=port), ack(acknowledgement, sport=port)]
    packets[1]["TCP"].sport, packets[1]["TCP"].dport = port, 40000
    packets[2]["TCP"].dport = port
    return packets


def test_connections_are_chosen_and_sorted(tmp_path):
    capture = pcap(
        tmp_path / "a.pcap", [*make_conversation(5001, 100), *make_conversation(5002, 300)]
    )

    def ports(*arguments):
        (file_result,) = run_metrics_as_json(capture, *arguments)["files"]
        return [row["destination_port"] for row in file_result["tcp"] if not row["direction"]]

    assert ports() == [5002, 5001]
    assert ports("--sort", "start") == [5001, 5002]
    assert ports("--port", 5001) == [5001]
    assert ports("--host", "10.0.0.0/24") == [5002, 5001] == ports("--host", "10.0.0.2")
    assert ports("--host", "192.0.2.1") == []
    assert ports("--from", "4.5 ms") == [5002]
    assert "no connection was selected" in run_metrics(capture, "--port", 9)


def test_few_are_shown_and_all_on_request(tmp_path):
    packets = [data(1, 10, sport=40000 + number) for number in range(25)]
    capture = pcap(tmp_path / "many.pcap", packets)
    assert "5 more connections: --all shows them" in run_metrics(capture)
    assert "more connections" not in run_metrics(capture, "--all")


def test_rows_as_csv():
    rows = list(csv.DictReader(io.StringIO(run_metrics(SENDER, RECEIVER, "--csv"))))
    assert {row["file"] for row in rows} == {str(SENDER), str(RECEIVER)}
    assert len(rows) == 8
    assert float(rows[0]["goodput_bps"]) > 0 and rows[0]["window_scale"] == "11"


def test_standard_input_and_compressed_files(tmp_path):
    packed = tmp_path / "a.pcap.gz"
    packed.write_bytes(gzip.compress(RECEIVER.read_bytes()))
    (there,), (here,) = run_metrics_as_json(RECEIVER)["files"], run_metrics_as_json(packed)["files"]
    assert here["tcp"] == there["tcp"]
    with RECEIVER.open("rb") as file:
        process = subprocess.run(
            [executable("nagi"), "metrics", "-", "--json"],
            stdin=file, capture_output=True, text=True, check=True,
        )  # fmt: skip
    (piped,) = json.loads(process.stdout)["files"]
    assert piped["file"] == "standard input" and piped["tcp"] == there["tcp"]


def test_an_interrupt_ends_it_while_it_waits_for_input():
    process = subprocess.Popen(
        [executable("nagi"), "metrics", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(RECEIVER.read_bytes()[:5000])
    process.stdin.flush()
    # Until it waits for more.
    status = Path(f"/proc/{process.pid}/wchan")
    while "pipe" not in status.read_text():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT


def test_udp_has_rows_of_its_own(tmp_path):
    packets = [
        MAC / IP(src="10.0.0.1", dst="10.0.0.2", id=number) / UDP(sport=1, dport=2) / bytes(1000)
        for number in range(11)
    ]
    capture = pcap(tmp_path / "udp.pcap", packets)
    output = run_metrics(capture)
    assert "UDP" in output and "10.0.0.1:1" in output and "TCP" not in output
    (file_result,) = run_metrics_as_json(capture)["files"]
    assert file_result["udp"][0]["goodput_bps"] == pytest.approx(11 * 1000 * 8 / 0.01)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf", "html"])
def test_a_connection_is_drawn(tmp_path, kind):
    path = tmp_path / f"plot.{kind}"
    run_metrics(SENDER, "--plot", path, "--connection", 1)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype"}[kind]
    assert path.read_bytes().startswith(start)
    again = tmp_path / f"again.{kind}"
    run_metrics(SENDER, "--plot", again, "--connection", 1)
    if kind in ("svg", "html", "png"):
        assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--bottleneck", "10"], "--bottleneck: 10 has no unit"),
        (["--from", "1x"], "--from: 'x' is no unit"),
        (["--from", "2s", "--to", "1s"], "the end is not after the start"),
        (["--from", "1 h"], "before --from"),
        (["--host", "nowhere"], "--host nowhere: not an address or network"),
        (["--port", "70000"], "--port 70000: not a port"),
        (["--sort", "size"], "--sort size: no such key; one of: bytes, packets"),
        (["--plot", "a.bmp"], "--plot a.bmp: no such format; name the file *.png"),
        (["--plot", "no/a.png"], "--plot no/a.png: there is no directory no; make it first"),
        (["--plot", "a.png", "--connection", "7"], "--connection 7: no TCP connection"),
        (["--sender", str(SENDER), str(SENDER)], "--sender with several captures"),
    ],
)
def test_wrong_input_is_refused(tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    assert complaint in run_metrics(RECEIVER, *arguments, status=2)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(tmp_path):
    (tmp_path / "text.pcap").write_text("hello, this is no capture at all")
    arp = pcap(tmp_path / "arp.pcap", [Ether() / ARP()])
    output = run_metrics(RECEIVER, tmp_path / "text.pcap", arp, tmp_path / "gone.pcap", status=1)
    assert f"{RECEIVER}:" in output and "0>" in output
    assert "text.pcap: " in output and "gone.pcap: " in output
    assert "arp.pcap: there is no TCP or UDP packet in it; its packets: 1 ARP" in output
    output = run_metrics(tmp_path / "gone.pcap", status=2)
    assert "gone.pcap: " in output


# What tcpdump says of the same files, in its own words.
DAMAGED = {
    "first-record": (b"\xff" * 100, "damaged: packet 1 claims 4294967295 bytes, at byte 24"),
    "first-header": (b"\0" * 6, "cut off inside the header of packet 1, at byte 24"),
    "after-arp": (None, "damaged: packet 2 claims 4294967295 bytes"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_before_any_connection_is_said(tmp_path, kind):
    rest, complaint = DAMAGED[kind]
    path = pcap(tmp_path / "damaged.pcap", [] if rest else [Ether() / ARP()])
    path.write_bytes(path.read_bytes() + (rest or b"\xff" * 100))
    assert complaint in run_metrics(path, status=2)


def test_a_damaged_pcapng_without_any_connection_is_said(tmp_path):
    path = pcapng(tmp_path / "damaged.pcapng", [(1, Ether() / ARP())])
    content = path.read_bytes()
    interface = content[28:52]
    path.write_bytes(content.replace(interface, b""))
    assert "packet 1 is of interface 0, which is not described" in run_metrics(path, status=2)


def write_many_connections(path, *, until: int):
    """Write 500 connections of 100 bytes each.

    In those after the first 20, bytes are acknowledged that were not captured, beyond `until`.
    """
    connections = [
        make_conversation(1000 + number, 100, until if number >= 20 else 101)
        for number in range(500)
    ]
    return pcap(path, [packet for packets in connections for packet in packets])


def test_all_rows_of_many_connections_are_printed(tmp_path):
    """Print more rows than are laid out at once; 20,000 once took a minute and 490 MB."""
    capture = write_many_connections(tmp_path / "many.pcap", until=101)
    output = run_metrics(capture, "--all").splitlines()
    for direction in "<>":
        for number in (0, 199, 200, 399, 400, 499):
            labels = [line.split()[0] for line in output if line.strip()]
            # In the tables of goodput, packets and RTT.
            assert labels.count(f"{number}{direction}") == 3
    assert {line.split()[2] for line in output if line.strip().startswith("499>")} >= {
        "10.0.0.2:1499"
    }


def test_warnings_about_many_connections_are_bounded(tmp_path):
    capture = write_many_connections(tmp_path / "many.pcap", until=100_001)
    process = CliRunner().invoke(make_app(), ["metrics", str(capture), "--csv"])
    assert process.exit_code == 0
    assert process.stderr.count("were acknowledged that the capture does not have") == 10
    assert (
        "packets of 470 more directions were not captured; their goodput is not known"
        in process.stderr
    )
