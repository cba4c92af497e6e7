# SPDX-License-Identifier: Apache-2.0
"""The modules with the messages of P4Runtime, from the package finsy, under finsy's short names.

They are p4d (p4data), p4i (p4info), p4t (p4types), p4r (p4runtime), p4r_grpc (calls of P4Runtime),
rpc_status (google.rpc.Status) and stratum (Stratum's role config). PyPI's package `p4runtime` has
the same messages, but needs protobuf 3.20, which is ten times slower in the Python versions that
nagi supports.
"""

from finsy.proto import p4d, p4i, p4r, p4r_grpc, p4t, rpc_status, stratum

__all__ = ["p4d", "p4i", "p4r", "p4r_grpc", "p4t", "rpc_status", "stratum"]
