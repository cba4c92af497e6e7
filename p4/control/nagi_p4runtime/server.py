# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime service over gRPC. Handlers check who asks; what is asked is the Device's and the
Streams' to do."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeAlias

import grpc
from nagi_p4.switch import Switch

from nagi_p4runtime import API_VERSION, errors
from nagi_p4runtime.arbitration import Arbitration, number_of
from nagi_p4runtime.device import BatchError, Device
from nagi_p4runtime.errors import Code, P4Error
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import Rights
from nagi_p4runtime.stream import MAX_STREAMS, Stream, Streams

_log = logging.getLogger(__name__)

# A stream keeps a thread. Reads take turns at the switch: few threads are enough.
_THREADS = MAX_STREAMS + 8
_MAX_MESSAGE = 64 << 20  # bytes: a pipeline, a batch
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
    ("grpc.max_send_message_length", _MAX_MESSAGE),
    ("grpc.so_reuseport", 0),  # a second server at the same address is an error
)
_NAME = "p4.v1.P4Runtime"

Context: TypeAlias = grpc.ServicerContext


class Service:
    """`gone`: called when the switch is gone: the server can only end then."""

    def __init__(
        self,
        device_id: int,
        device: Device,
        switch: Switch,
        events: Switch,
        gone: Callable[[OSError], None],
    ) -> None:
        self._device_id = device_id
        self._device = device
        self._arbitration = Arbitration(device_id)
        self._gone = gone
        self.streams = Streams(device, self._arbitration, switch, events, gone)

    def write(self, request: p4r.WriteRequest, context: Context) -> bytes:
        with _Answering(self, context), self._device.lock:
            rights, taken = self._check_writer(request.device_id, request.role, request.election_id)
            self._device.write(request, rights, taken)
        return b""  # an empty WriteResponse

    def read(self, request: p4r.ReadRequest, context: Context) -> Iterator[bytes]:
        with _Answering(self, context):
            self._check_device(request.device_id)
            rights = self.streams.rights(request.role)
            with self._device.lock:
                responses, failed = self._device.read(request.entities, rights)
        yield from responses
        if failed is not None:
            _abort_batch(context, failed)

    def set_pipeline(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Context
    ) -> bytes:
        with _Answering(self, context), self._device.lock:
            rights, _ = self._check_writer(request.device_id, request.role, request.election_id)
            if not rights.sets_pipelines:
                raise P4Error(
                    Code.PERMISSION_DENIED, f"role {request.role!r} may not set pipelines"
                )
            self._set_pipeline(request)
        return b""

    def _set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        kinds = p4r.SetForwardingPipelineConfigRequest
        has_config = request.HasField("config")
        if request.action == kinds.COMMIT:
            if has_config:
                raise errors.invalid("COMMIT with a config; it is for the one that was saved")
            self._device.commit_saved()
            return
        if request.action == kinds.UNSPECIFIED:
            raise errors.invalid("no action; give VERIFY_AND_COMMIT or another")
        if not has_config:
            raise errors.invalid(f"{kinds.Action.Name(request.action)} without a config; give one")
        if request.action == kinds.VERIFY:
            self._device.verify(request.config)
        elif request.action == kinds.VERIFY_AND_SAVE:
            self._device.save(request.config)
        elif request.action == kinds.VERIFY_AND_COMMIT:
            self._device.commit(request.config)
        elif request.action == kinds.RECONCILE_AND_COMMIT:
            self._device.reconcile(request.config)
        else:
            raise errors.invalid(f"there is no action {request.action}")

    def get_pipeline(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Context
    ) -> p4r.GetForwardingPipelineConfigResponse:
        response = p4r.GetForwardingPipelineConfigResponse()
        with _Answering(self, context):
            self._check_device(request.device_id)
            with self._device.lock:
                pipeline = self._device.pipeline
                if pipeline is None:
                    return response
                kinds = p4r.GetForwardingPipelineConfigRequest
                response.config.SetInParent()
                if pipeline.config.HasField("cookie"):
                    response.config.cookie.CopyFrom(pipeline.config.cookie)
                if request.response_type in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
                    response.config.p4info.CopyFrom(pipeline.config.p4info)
                if request.response_type in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
                    response.config.p4_device_config = pipeline.config.p4_device_config
        return response

    def capabilities(
        self, request: p4r.CapabilitiesRequest, context: Context
    ) -> p4r.CapabilitiesResponse:
        with _Answering(self, context):
            if request.device_id:
                self._check_device(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def stream_channel(
        self, requests: Iterator[p4r.StreamMessageRequest], context: Context
    ) -> Iterator[p4r.StreamMessageResponse]:
        with _Answering(self, context):
            stream = self.streams.open()
        context.add_callback(stream.end)
        reader = threading.Thread(
            target=self._take_all, args=(stream, requests), name="stream", daemon=True
        )
        reader.start()
        try:
            yield from stream.responses()
        except P4Error as error:
            self.streams.close(stream)
            context.abort(error.code.grpc, error.message)
        finally:
            self.streams.close(stream)

    def _take_all(self, stream: Stream, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        try:
            for request in requests:
                self.streams.take(stream, request)
        except P4Error as error:
            stream.end(error)
        except OSError as error:
            self._gone(error)
        except Exception as error:
            # gRPC ends the iterator of a client that is gone by an exception of its own.
            if not isinstance(error, grpc.RpcError) and str(error):
                _log.exception("a message of a client")
                stream.end(P4Error(Code.INTERNAL, f"{type(error).__name__}: {error}"))
                return
            stream.end()
        else:
            stream.end()

    def _check_device(self, device_id: int) -> None:
        if device_id != self._device_id:
            raise P4Error(
                Code.NOT_FOUND, f"there is no device {device_id}; this is {self._device_id}"
            )

    def _check_writer(
        self, device_id: int, role: str, election_id: p4r.Uint128
    ) -> tuple[Rights, frozenset[int]]:
        self._check_device(device_id)
        return self.streams.check_primary(role, number_of(election_id))

    def end(self, error: OSError | None) -> None:
        """Ends all streams; `error`: the switch's."""
        reason = "the server ends" if error is None else f"the switch is gone: {error}"
        self.streams.end(P4Error(Code.UNAVAILABLE, reason))

    def switch_is_gone(self, error: OSError) -> None:
        self._gone(error)


class _Answering:
    """Errors of what is done within go to the client."""

    def __init__(self, service: Service, context: Context) -> None:
        self._service = service
        self._context = context

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, P4Error):
            self._context.abort(error.code.grpc, error.message)
        if isinstance(error, BatchError):
            _abort_batch(self._context, error)
        if isinstance(error, OSError):
            self._service.switch_is_gone(error)
            self._context.abort(Code.UNAVAILABLE.grpc, f"the switch is gone: {error}")


def _abort_batch(context: Context, failed: BatchError) -> NoReturn:
    message, status = errors.details(failed.errors)
    context.set_trailing_metadata(((errors.DETAILS, status),))
    context.abort(Code.UNKNOWN.grpc, message)
    raise AssertionError  # abort() raises


def _by_few_threads(method: Callable[[Any, Context], bytes]) -> Callable[[Any, Context], bytes]:
    """Writes take turns at the switch. Two threads of their own, of which one reads a request while
    the other waits for the switch, save a third of the time that many take, as each Write would
    wake another one."""

    def handler(request: Any, context: Context) -> bytes:
        return method(request, context)

    handler.experimental_thread_pool = ThreadPoolExecutor(2, "write")  # type: ignore[attr-defined]
    return handler


def _handlers(service: Service) -> grpc.GenericRpcHandler:
    """As the generated code has them, but answers that are bytes already stay such."""
    kinds = p4r
    return grpc.method_handlers_generic_handler(
        _NAME,
        {
            "Write": grpc.unary_unary_rpc_method_handler(
                _by_few_threads(service.write), kinds.WriteRequest.FromString, None
            ),
            "Read": grpc.unary_stream_rpc_method_handler(
                service.read, kinds.ReadRequest.FromString, None
            ),
            "SetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler(
                service.set_pipeline, kinds.SetForwardingPipelineConfigRequest.FromString, None
            ),
            "GetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler(
                service.get_pipeline,
                kinds.GetForwardingPipelineConfigRequest.FromString,
                kinds.GetForwardingPipelineConfigResponse.SerializeToString,
            ),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                service.stream_channel,
                kinds.StreamMessageRequest.FromString,
                kinds.StreamMessageResponse.SerializeToString,
            ),
            "Capabilities": grpc.unary_unary_rpc_method_handler(
                service.capabilities,
                kinds.CapabilitiesRequest.FromString,
                kinds.CapabilitiesResponse.SerializeToString,
            ),
        },
    )


class Certificates(NamedTuple):
    """PEM texts of TLS. `authority`: that signs clients' certificates; None: they need none."""

    key: bytes
    certificate: bytes
    authority: bytes | None


class Server:
    """Listens at `listen`: "unix:PATH", whose owner alone may connect, or "HOST:PORT". Raises
    OSError if that is not possible."""

    def __init__(
        self, service: Service, listen: str, certificates: Certificates | None = None
    ) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="rpc"), options=_OPTIONS
        )
        self._server.add_generic_rpc_handlers((_handlers(service),))
        umask = os.umask(0o177)
        try:
            if certificates is None:
                self.port = self._server.add_insecure_port(listen)
            else:
                key, certificate, authority = certificates
                credentials = grpc.ssl_server_credentials(
                    [(key, certificate)], authority, require_client_auth=authority is not None
                )
                self.port = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            self.port = 0
        finally:
            os.umask(umask)
        if self.port == 0:
            raise OSError(f"{listen}: cannot listen here; is it in use?")

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=0.5).wait()
