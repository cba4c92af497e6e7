# SPDX-License-Identifier: Apache-2.0
"""The connection to a Dask scheduler. Whether it is encrypted is Dask's setting
(distributed.comm.tls).
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

from distributed import Client, Security
from distributed.comm.addressing import get_address_host_port, parse_address
from distributed.comm.core import connect
from distributed.comm.registry import backends
from nagi_contracts.errors import choices, excerpt, refuse

_TIMEOUT_S = 10
_CURE = "give the address that `dask scheduler` says, such as tcp://127.0.0.1:8786"


def connected(given: str) -> tuple[Client, str]:
    """A client of the scheduler at an address, or at that in a scheduler's file; and the address.
    Raises InputError."""
    address = _address_in(Path(given)) if Path(given).is_file() else given
    security = _security(address)
    try:
        host, port = get_address_host_port(address)
    except ValueError:
        raise refuse(f"--dask {excerpt(given)}: there is no HOST:PORT in it", _CURE) from None
    try:
        socket.create_connection((host, port), _TIMEOUT_S).close()
    except OSError as error:
        why = f"no scheduler answers there: {error.strerror or error}"
        raise refuse(f"--dask {excerpt(given)}: {why}", _CURE) from None
    try:
        # By itself first: a client that is refused here takes long to give up.
        asyncio.run(asyncio.wait_for(_greet(address, security), _TIMEOUT_S))
        client = Client(
            address, timeout=_TIMEOUT_S, security=security, set_as_default=False, name="nagi"
        )
        return client, address
    except (OSError, ValueError):
        raise refuse(
            f"--dask {excerpt(given)}: what answers there does not speak as a Dask scheduler does",
            f"{_CURE}; one with TLS is tls://HOST:PORT, and takes certificates that it knows",
        ) from None


def _address_in(file: Path) -> str:
    """The address that a scheduler wrote to its file."""
    try:
        found = json.loads(file.read_bytes())["address"]
        if isinstance(found, str):
            return found
    except (OSError, ValueError, TypeError, KeyError):
        pass
    cure = "give what `dask scheduler --scheduler-file` has written, or an address"
    raise refuse("--dask: this is not a scheduler's file", cure, file=str(file))


def _security(address: str) -> Security:
    """As Dask is set up."""
    scheme, _ = parse_address(address)
    if scheme not in backends or scheme == "inproc":
        known = [name for name in ("tcp", "tls", "ws", "wss") if name in backends]
        what = f"--dask {excerpt(address)}: {excerpt(scheme)} is no protocol of schedulers"
        raise refuse(what, choices(scheme, known))
    try:
        security = Security()
        if scheme in ("tls", "wss") and _arguments(security)["ssl_context"] is None:
            raise refuse(
                f"--dask {excerpt(address)}: Dask has no certificates for TLS",
                "set distributed.comm.tls.ca-file, client.cert and client.key in Dask's "
                "configuration: docs/clusters.md has an example",
            )
    except OSError as error:
        raise refuse(
            f"Dask's certificates for TLS cannot be read: {error.strerror or error}",
            "see distributed.comm.tls in Dask's configuration",
            file=str(error.filename or ""),
        ) from None
    return security


def _arguments(security: Security) -> dict[str, Any]:
    return dict(security.get_connection_args("client"))


async def _greet(address: str, security: Security) -> None:
    comm = await connect(address, timeout=_TIMEOUT_S, **_arguments(security))
    await comm.close()
