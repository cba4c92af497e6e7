# SPDX-License-Identifier: Apache-2.0
"""Backends, which carry packets between nodes. Each is a folder; interface.py lists its files."""
