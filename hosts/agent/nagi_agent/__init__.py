# SPDX-License-Identifier: Apache-2.0
"""nagi-agent executes run plans on one host. It imports the standard library only."""
