# SPDX-License-Identifier: Apache-2.0
"""Fetches results from workers as soon as they exist, so that workers can free their memory."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nagi.cluster import tasks
from nagi.cluster.scheduler_client import SchedulerClient
from nagi.cluster.worker import AnyFuture

_PARALLEL_FETCHES = 2

Fetch = concurrent.futures.Future[tasks.Outcome]


class ResultFetcher:
    """Threads that fetch results, and queue an event at the client for each of them."""

    def __init__(self, client: SchedulerClient) -> None:
        self._client = client
        self._executor = ThreadPoolExecutor(_PARALLEL_FETCHES)

    def fetch(self, future: AnyFuture, callback: Callable[[Fetch], None]) -> None:
        """Fetch the result of a finished task, then queue `callback` with the fetch."""
        fetch = self._executor.submit(future.result)
        fetch.add_done_callback(lambda done: self._client.add_event(partial(callback, done)))

    def close(self) -> None:
        """Cancel the fetches that have not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)
