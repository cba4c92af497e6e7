# SPDX-License-Identifier: Apache-2.0
"""Reading of captures and drop logs: packets, connections, losses, delays, and hosts' clocks."""
