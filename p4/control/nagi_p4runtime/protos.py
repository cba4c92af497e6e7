# SPDX-License-Identifier: Apache-2.0
"""The messages of P4Runtime, by finsy's short names.

They are p4d (p4data), p4i (p4info), p4t (p4types), p4r (p4runtime), those of google.rpc, and
Stratum's config of roles. finsy contains them. PyPI's `p4runtime` has the same ones, but its
modules need protobuf 3.20, which is ten times slower on the Pythons that nagi runs on.
"""

from finsy.proto import p4d, p4i, p4r, p4r_grpc, p4t, rpc_status, stratum

__all__ = ["p4d", "p4i", "p4r", "p4r_grpc", "p4t", "rpc_status", "stratum"]
