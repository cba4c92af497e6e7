# SPDX-License-Identifier: Apache-2.0
"""The backend `switch`: nodes that are switches with a P4 pipeline.

The pipeline is executed by nagi-switch, by bmv2, or by a switch that has a P4Runtime server.
"""
