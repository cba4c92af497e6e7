# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime server for nagi-switch and bmv2's simple_switch, and a client for P4Runtime servers.

Server and client follow the P4Runtime specification 1.4 (https://p4.org/specifications/).
"""

API_VERSION = "1.4.1"
