# SPDX-License-Identifier: Apache-2.0
"""Nodes that are switches with a P4 pipeline: nagi-switch, bmv2, or one behind P4Runtime."""
