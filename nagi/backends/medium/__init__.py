# SPDX-License-Identifier: Apache-2.0
"""Media that several stations share by IEEE 802.11's DCF."""
