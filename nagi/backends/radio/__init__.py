# SPDX-License-Identifier: Apache-2.0
"""Links that are radios: modems of GNU Radio over a simulated channel or over UHD devices."""
