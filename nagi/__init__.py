# SPDX-License-Identifier: Apache-2.0
"""nagi measures which fraction of the capacity of a path a TCP scheme achieves."""
