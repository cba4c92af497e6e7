# SPDX-License-Identifier: Apache-2.0
"""What agents recorded, as the tables of a run directory."""
