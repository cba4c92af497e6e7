# SPDX-License-Identifier: Apache-2.0
"""Whether the links and hosts of a run did what its plan says."""
