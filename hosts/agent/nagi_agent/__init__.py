# SPDX-License-Identifier: Apache-2.0
"""nagi-agent: executes one host's part of run plans. Python standard library only."""
