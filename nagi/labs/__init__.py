# SPDX-License-Identifier: Apache-2.0
"""Labs that execute runs: network namespaces, guests in virtual time, and real hosts."""
