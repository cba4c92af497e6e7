# SPDX-License-Identifier: Apache-2.0
"""Define experiment files with shared media for tests."""

from __future__ import annotations

CHAIN = """\
schema_version: 1
name: chain
title: A chain of hops
seed: 5
nodes: {n0: host, n1: router, n2: router, n3: host}
media:
  air:
    phy: 802.11b
    data_rate: 11 Mb/s
    basic_rate: 1 Mb/s
    rts_threshold: 0 bytes
    monitor: true
    stations:
      n0: {at: [0 m, 0 m]}
      n1: {at: [200 m, 0 m]}
      n2: {at: [400 m, 0 m]}
      n3: {at: [600 m, 0 m]}
flows:
  bulk: {from: n0, to: n3, scheme: $scheme, payload: 1000 bytes}
duration: 4 s
warmup: 1 s
matrix: {scheme: [newreno]}
report: {x: scheme}
"""
