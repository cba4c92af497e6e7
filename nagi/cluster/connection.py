# SPDX-License-Identifier: Apache-2.0
"""Connects to a Dask scheduler.

Dask's setting `distributed.comm.tls` decides whether the connection is encrypted.
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
from nagi_contracts.errors import excerpt, refuse, suggest

_TIMEOUT_S = 10
_CURE = "give the address that `dask scheduler` prints, such as tcp://127.0.0.1:8786"


def connect_client(option: str) -> tuple[Client, str]:
    """Connect to a scheduler.

    Args:
        option: The value of `--dask`: an address, or a file that `dask scheduler` has written.

    Returns:
        The connected client, and the address of the scheduler.

    Raises:
        InputError: The address is malformed, no scheduler answers, or TLS is not configured.
    """
    address = _read_scheduler_address(Path(option)) if Path(option).is_file() else option
    security = _make_security(address)
    try:
        host, port = get_address_host_port(address)
    except ValueError:
        raise refuse(f"--dask {excerpt(option)}: this address has no HOST:PORT", _CURE) from None
    try:
        socket.create_connection((host, port), _TIMEOUT_S).close()
    except OSError as error:
        problem = f"no scheduler answers at this address: {error.strerror or error}"
        raise refuse(f"--dask {excerpt(option)}: {problem}", _CURE) from None
    try:
        # Connect without a client first, because a client retries for a long time if it is refused.
        asyncio.run(asyncio.wait_for(_test_connection(address, security), _TIMEOUT_S))
        client = Client(
            address, timeout=_TIMEOUT_S, security=security, set_as_default=False, name="nagi"
        )
        return client, address
    except (OSError, ValueError):
        raise refuse(
            f"--dask {excerpt(option)}: the program that answers is no Dask scheduler",
            f"{_CURE}; a scheduler with TLS is tls://HOST:PORT, and must accept your certificate",
        ) from None


def _read_scheduler_address(file: Path) -> str:
    """Return the address in a file of `dask scheduler --scheduler-file`.

    Raises:
        InputError: The file has no address.
    """
    try:
        address = json.loads(file.read_bytes())["address"]
        if isinstance(address, str):
            return address
    except (OSError, ValueError, TypeError, KeyError):
        pass
    cure = "give the file that `dask scheduler --scheduler-file` has written, or an address"
    raise refuse("--dask: this is not a scheduler's file", cure, file=str(file))


def _make_security(address: str) -> Security:
    """Return Dask's security settings for an address, from Dask's configuration.

    Raises:
        InputError: The protocol of the address is not supported, or certificates are missing.
    """
    protocol, _ = parse_address(address)
    if protocol not in backends or protocol == "inproc":
        supported = [name for name in ("tcp", "tls", "ws", "wss") if name in backends]
        problem = f"--dask {excerpt(address)}: {excerpt(protocol)} is no protocol of Dask"
        raise refuse(problem, suggest(protocol, supported))
    try:
        security = Security()
        if (
            protocol in ("tls", "wss")
            and _get_connection_arguments(security)["ssl_context"] is None
        ):
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


def _get_connection_arguments(security: Security) -> dict[str, Any]:
    return dict(security.get_connection_args("client"))


async def _test_connection(address: str, security: Security) -> None:
    """Connect to a scheduler and disconnect. Raises OSError or ValueError if this is refused."""
    comm = await connect(address, timeout=_TIMEOUT_S, **_get_connection_arguments(security))
    await comm.close()
