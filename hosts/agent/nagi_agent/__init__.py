# SPDX-License-Identifier: Apache-2.0
"""nagi-agent executes one host's part of run plans. It imports the standard library only."""
