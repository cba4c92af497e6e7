# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime server for every switch that nagi_p4 can talk to: nagi-switch and bmv2's
simple_switch. It follows the P4Runtime specification 1.4 (https://p4.org/specifications/)."""

API_VERSION = "1.4.1"
