# SPDX-License-Identifier: Apache-2.0
"""What carries packets between nodes: one folder per backend, with the same files in each."""
