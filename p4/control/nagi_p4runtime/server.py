# SPDX-License-Identifier: Apache-2.0
"""The P4Runtime service over gRPC.

The handlers check whether the client may send a request. Device and Streams perform requests.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeAlias

import grpc
from nagi_p4.switch import Switch

from nagi_p4runtime import API_VERSION
from nagi_p4runtime.arbitration import Arbitration, parse_election_id
from nagi_p4runtime.device import BatchError, Device
from nagi_p4runtime.errors import STATUS_KEY, Code, InvalidArgument, P4Error, encode_errors
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.roles import Rights
from nagi_p4runtime.stream import MAX_STREAMS, Stream, Streams

_log = logging.getLogger(__name__)

# A stream occupies a thread. Other requests need few threads, because they use the switch one at a
# time.
_THREADS = MAX_STREAMS + 8
_MAX_MESSAGE = 64 << 20  # bytes, enough for large pipelines and batches
_OPTIONS = (
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
    ("grpc.max_send_message_length", _MAX_MESSAGE),
    ("grpc.so_reuseport", 0),  # a second server at the same address is an error
)
_NAME = "p4.v1.P4Runtime"

Context: TypeAlias = grpc.ServicerContext


class Service:
    """The handlers of the calls (RPCs) of a P4Runtime server.

    Args:
        device_id: The id by which clients address the device.
        device: The device.
        switch: The connection to the switch that requests use.
        events: A second connection to the same switch, from which events are read.
        on_gone: A function that is called with the error when the connection to the switch is lost.
            It should end the server.
    """

    def __init__(
        self,
        device_id: int,
        device: Device,
        switch: Switch,
        events: Switch,
        on_gone: Callable[[OSError], None],
    ) -> None:
        self._device_id = device_id
        self._device = device
        self._arbitration = Arbitration(device_id)
        self._on_gone = on_gone
        self.streams = Streams(device, self._arbitration, switch, events, on_gone)

    def write(self, request: p4r.WriteRequest, context: Context) -> bytes:
        """Perform a Write, and return an encoded, empty WriteResponse."""
        with _ErrorSender(self, context), self._device.lock:
            rights, reserved_ids = self._check_writer(
                request.device_id, request.role, request.election_id
            )
            self._device.write(request, rights, reserved_ids)
        return b""

    def read(self, request: p4r.ReadRequest, context: Context) -> Iterator[bytes]:
        """Perform a Read, and yield its encoded ReadResponses.

        If a request of the Read failed, the call ends with an error after the responses.
        """
        with _ErrorSender(self, context):
            self._check_device(request.device_id)
            rights = self.streams.find_rights(request.role)
            with self._device.lock:
                responses, error = self._device.read(request.entities, rights)
        yield from responses
        if error is not None:
            _abort_batch(context, error)

    def set_pipeline(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Context
    ) -> bytes:
        """Perform a SetForwardingPipelineConfig, and return an encoded, empty response."""
        with _ErrorSender(self, context), self._device.lock:
            rights, _ = self._check_writer(request.device_id, request.role, request.election_id)
            if not rights.can_set_pipelines:
                raise P4Error(
                    Code.PERMISSION_DENIED, f"role {request.role!r} may not set pipelines"
                )
            self._set_pipeline(request)
        return b""

    def _set_pipeline(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Perform the action that a SetForwardingPipelineConfig requests."""
        actions = p4r.SetForwardingPipelineConfigRequest
        has_config = request.HasField("config")
        if request.action == actions.COMMIT:
            if has_config:
                raise InvalidArgument(
                    "COMMIT with a config; leave the config out, because COMMIT runs the saved one"
                )
            self._device.commit_saved()
            return
        if request.action == actions.UNSPECIFIED:
            raise InvalidArgument("the action is missing; give one, such as VERIFY_AND_COMMIT")
        if not has_config:
            raise InvalidArgument(
                f"{actions.Action.Name(request.action)} without a config; give one"
            )
        if request.action == actions.VERIFY:
            self._device.verify(request.config)
        elif request.action == actions.VERIFY_AND_SAVE:
            self._device.save(request.config)
        elif request.action == actions.VERIFY_AND_COMMIT:
            self._device.commit(request.config)
        elif request.action == actions.RECONCILE_AND_COMMIT:
            self._device.reconcile(request.config)
        else:
            raise InvalidArgument(f"there is no action {request.action}")

    def get_pipeline(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Context
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the parts of the running pipeline's config that the request asks for.

        The response is empty if there is no pipeline.
        """
        response = p4r.GetForwardingPipelineConfigResponse()
        with _ErrorSender(self, context):
            self._check_device(request.device_id)
            with self._device.lock:
                pipeline = self._device.pipeline
                if pipeline is None:
                    return response
                types = p4r.GetForwardingPipelineConfigRequest
                response.config.SetInParent()
                if pipeline.config.HasField("cookie"):
                    response.config.cookie.CopyFrom(pipeline.config.cookie)
                if request.response_type in (types.ALL, types.P4INFO_AND_COOKIE):
                    response.config.p4info.CopyFrom(pipeline.config.p4info)
                if request.response_type in (types.ALL, types.DEVICE_CONFIG_AND_COOKIE):
                    response.config.p4_device_config = pipeline.config.p4_device_config
        return response

    def get_capabilities(
        self, request: p4r.CapabilitiesRequest, context: Context
    ) -> p4r.CapabilitiesResponse:
        """Return the version of P4Runtime that the server supports."""
        with _ErrorSender(self, context):
            if request.device_id:
                self._check_device(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def serve_stream(
        self, requests: Iterator[p4r.StreamMessageRequest], context: Context
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Open a stream, handle its messages in a thread, and yield the messages for its client."""
        with _ErrorSender(self, context):
            stream = self.streams.open()
        context.add_callback(stream.finish)
        reader = threading.Thread(
            target=self._handle_all, args=(stream, requests), name="stream", daemon=True
        )
        reader.start()
        try:
            yield from stream.iterate_messages()
        except P4Error as error:
            self.streams.close(stream)
            context.abort(error.code.grpc, error.message)
        finally:
            self.streams.close(stream)

    def _handle_all(self, stream: Stream, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        """Handle the messages of a client until its stream ends. A thread per stream runs this."""
        try:
            for request in requests:
                self.streams.handle(stream, request)
        except P4Error as error:
            stream.finish(error)
        except OSError as error:
            self._on_gone(error)
        except Exception as error:
            # When a client disconnects, the iterator of gRPC raises an exception without a message.
            if not isinstance(error, grpc.RpcError) and str(error):
                _log.exception("cannot handle a message of a client")
                stream.finish(P4Error(Code.INTERNAL, f"{type(error).__name__}: {error}"))
                return
            stream.finish()
        else:
            stream.finish()

    def _check_device(self, device_id: int) -> None:
        if device_id != self._device_id:
            raise P4Error(
                Code.NOT_FOUND, f"there is no device {device_id}; this is {self._device_id}"
            )

    def _check_writer(
        self, device_id: int, role: str, election_id: p4r.Uint128
    ) -> tuple[Rights, frozenset[int]]:
        """Check that a request is for this device and comes from the primary client of `role`.

        Returns:
            The rights of the role, and the ids of objects that only other roles may write.
        """
        self._check_device(device_id)
        return self.streams.check_primary(role, parse_election_id(election_id))

    def end_streams(self, error: OSError | None) -> None:
        """End all streams.

        Args:
            error: Why the connection to the switch was lost; None if the server ends for another
                reason.
        """
        reason = "the server ends" if error is None else f"the switch is gone: {error}"
        self.streams.end_all(P4Error(Code.UNAVAILABLE, reason))

    def report_gone(self, error: OSError) -> None:
        """Call `on_gone`, because the connection to the switch is lost."""
        self._on_gone(error)


class _ErrorSender:
    """A context manager that sends P4Error, BatchError and OSError to the client of a call."""

    def __init__(self, service: Service, context: Context) -> None:
        self._service = service
        self._context = context

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, P4Error):
            self._context.abort(error.code.grpc, error.message)
        if isinstance(error, BatchError):
            _abort_batch(self._context, error)
        if isinstance(error, OSError):
            self._service.report_gone(error)
            self._context.abort(Code.UNAVAILABLE.grpc, f"the switch is gone: {error}")


def _abort_batch(context: Context, error: BatchError) -> NoReturn:
    message, status = encode_errors(error.errors)
    context.set_trailing_metadata(((STATUS_KEY, status),))
    context.abort(Code.UNKNOWN.grpc, message)
    raise AssertionError  # abort() raises


def _run_on_two_threads(
    method: Callable[[Any, Context], bytes],
) -> Callable[[Any, Context], bytes]:
    """Return `method` as a handler that runs on its own pool of two threads.

    Because Writes use the switch one at a time, two threads suffice: one parses a request while the
    other waits for the switch. In the large pool of the server, each Write would wake another
    thread, and Writes would take 1.5 times as long.
    """

    def handler(request: Any, context: Context) -> bytes:
        return method(request, context)

    handler.experimental_thread_pool = ThreadPoolExecutor(2, "write")  # type: ignore[attr-defined]
    return handler


def _make_handlers(service: Service) -> grpc.GenericRpcHandler:
    """Return the service's handlers for gRPC, in place of gRPC's generated code.

    Responses that the handlers return as bytes are not encoded again.
    """
    return grpc.method_handlers_generic_handler(
        _NAME,
        {
            "Write": grpc.unary_unary_rpc_method_handler(
                _run_on_two_threads(service.write), p4r.WriteRequest.FromString, None
            ),
            "Read": grpc.unary_stream_rpc_method_handler(
                service.read, p4r.ReadRequest.FromString, None
            ),
            "SetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler(
                service.set_pipeline, p4r.SetForwardingPipelineConfigRequest.FromString, None
            ),
            "GetForwardingPipelineConfig": grpc.unary_unary_rpc_method_handler(
                service.get_pipeline,
                p4r.GetForwardingPipelineConfigRequest.FromString,
                p4r.GetForwardingPipelineConfigResponse.SerializeToString,
            ),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(
                service.serve_stream,
                p4r.StreamMessageRequest.FromString,
                p4r.StreamMessageResponse.SerializeToString,
            ),
            "Capabilities": grpc.unary_unary_rpc_method_handler(
                service.get_capabilities,
                p4r.CapabilitiesRequest.FromString,
                p4r.CapabilitiesResponse.SerializeToString,
            ),
        },
    )


class Certificates(NamedTuple):
    """The PEM texts for TLS.

    Attributes:
        key: The private key of the server.
        certificate: The certificate of the server.
        authority: The certificate of the CA that signs certificates of clients; None if clients
            need no certificate.
    """

    key: bytes
    certificate: bytes
    authority: bytes | None


class Server:
    """A gRPC server.

    Args:
        service: The service.
        listen: The address: "unix:PATH", to which only the owner of the socket may connect, or
            "HOST:PORT".
        certificates: Key and certificates for TLS; None for connections without TLS.

    Attributes:
        port: The TCP port.

    Raises:
        OSError: The server cannot listen at this address.
    """

    def __init__(
        self, service: Service, listen: str, certificates: Certificates | None = None
    ) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="rpc"), options=_OPTIONS
        )
        self._server.add_generic_rpc_handlers((_make_handlers(service),))
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
            raise OSError(f"{listen}: cannot listen at this address; is the address in use?")

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=0.5).wait()
