# SPDX-License-Identifier: Apache-2.0
"""The files in the run directory, where agents, the emulator and nagi record one run.

| file | contents |
| --- | --- |
| plan.json | the run plan |
| manifest.json | hosts, versions, settings in effect, checksums of the other files |
| links.json | the emulator's counts |
| packets.parquet | the fate of every packet that the emulator saw |
| transmissions.parquet | outcome of every transmission; if a link is a radio or has ARQ |
| radios.json | devices of radio links, and measurements; if there is radio hardware |
| frames.parquet | outcome of every frame on a medium; if there are media |
| drops.pcapng | every packet that the emulator dropped: headers, time and reason |
| switches.json | the switches' counts; if there are switches |
| NODE.drops.pcapng | packets that a switch (nagi-switch) dropped |
| NODE.pipeline.json | compiled P4 program of a user on a switch |
| NODE.digests.jsonl | digests that the user's P4 program sent |
| NODE.controller.log | output of the user's controller of the switch |
| queue_samples.parquet | samples of the switches' queues over time |
| flows.json | the last state of each flow in its sender's kernel |
| tcp_info.parquet | TCP_INFO of each sender over time |
| scheme_events.parquet | events that nagi's schemes reported of their connections |
| NODE.LINK.pcap | captures, headers only; NODE.LINK.pcap.zst if compressed |
| applications.json | records of client and server of flows of nagi-traffic; if there are any |
| command-ROLE.FLOW.log | output of the programs of `traffic: command` |
| goodput.parquet | goodput over time of flows that share a bottleneck, from the captures |
| verdict.json | the run's certificate: whether the links behaved as planned |
| metrics.json | the run's rows of results.parquet |
"""

from nagi_contracts.records.campaign import Campaign, CampaignRun, Keep, Until
from nagi_contracts.records.manifest import (
    COMPRESSED,
    Build,
    FileFate,
    FileSum,
    Manifest,
    compute_sha256,
)
from nagi_contracts.records.node import (
    CaptureCount,
    ClientEnd,
    FlowRecord,
    Flows,
    HostFacts,
    NodeRecord,
    Noise,
)
from nagi_contracts.records.rows import (
    FrameKind,
    FrameOutcome,
    FrameRow,
    Outcome,
    PacketRow,
    SchemeEvent,
    TcpInfoSample,
    TransmissionRow,
)
from nagi_contracts.records.verdict import (
    Check,
    Explanation,
    HostClock,
    Information,
    NoiseCause,
    Status,
    Verdict,
)

__all__ = [
    "COMPRESSED",
    "Build",
    "Campaign",
    "CampaignRun",
    "CaptureCount",
    "Check",
    "ClientEnd",
    "Explanation",
    "FileFate",
    "FileSum",
    "FlowRecord",
    "Flows",
    "FrameKind",
    "FrameOutcome",
    "FrameRow",
    "HostClock",
    "HostFacts",
    "Information",
    "Keep",
    "Manifest",
    "NodeRecord",
    "Noise",
    "NoiseCause",
    "Outcome",
    "PacketRow",
    "SchemeEvent",
    "Status",
    "TcpInfoSample",
    "TransmissionRow",
    "Until",
    "Verdict",
    "compute_sha256",
]
