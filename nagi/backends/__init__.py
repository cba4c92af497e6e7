# SPDX-License-Identifier: Apache-2.0
"""Backends, which carry packets between nodes: one folder each, all with the same files."""
