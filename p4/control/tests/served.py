# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime server over a nagi-switch without network and clock (`simulate`), and a client."""

from __future__ import annotations

import itertools
import queue
import threading
from contextlib import ExitStack
from pathlib import Path

import grpc
from google.protobuf import text_format
from nagi_contracts.paths import executable
from nagi_p4.simulation import Simulation
from nagi_p4runtime.device import Device
from nagi_p4runtime.errors import STATUS_KEY, Code
from nagi_p4runtime.protos import p4i, p4r, p4r_grpc, rpc_status
from nagi_p4runtime.server import Server, Service

P4 = Path(__file__).parents[2]
EDGE, EDGE_INFO = P4 / "edge.json", P4 / "edge.p4info.txtpb"
WAIT_S = 30  # timeout for messages that are certain to come


class Simulated(Simulation):
    """A simulated switch that several threads may use."""

    def __init__(self, *given, **settings):
        self._lock = threading.Lock()
        super().__init__(*given, executable=executable("nagi-switch"), **settings)

    def request(self, operation):
        with self._lock:
            return super().request(operation)


def read_info(path):
    return text_format.Parse(path.read_text(), p4i.P4Info())


def config_of(json_path, info_path, cookie=None):
    config = p4r.ForwardingPipelineConfig(
        p4info=read_info(info_path), p4_device_config=json_path.read_bytes()
    )
    if cookie is not None:
        config.cookie.cookie = cookie
    return config


class Session:
    """A client with a stream. With `election_id` 0 it sends none."""

    def __init__(self, channel, device_id=1, election_id=1, role="", join=True):
        self.stub = p4r_grpc.P4RuntimeStub(channel)
        self.device_id, self.election_id, self.role = device_id, election_id, role
        self._requests = queue.SimpleQueue()
        self.received = queue.SimpleQueue()
        call = self.stub.StreamChannel(iter(self._requests.get, None))
        self._thread = threading.Thread(target=self._receive, args=(call,), daemon=True)
        self._thread.start()
        if join:
            self.arbitrate()

    def _receive(self, call):
        try:
            for message in call:
                self.received.put(message)
        except grpc.RpcError as error:
            self.received.put(error)
        else:
            self.received.put(None)

    def send(self, **message):
        self._requests.put(p4r.StreamMessageRequest(**message))

    def next(self, timeout=WAIT_S):
        return self.received.get(timeout=timeout)

    def receive_next(self, kind):
        """Return the next message of a kind; skip others."""
        for _ in range(1000):
            message = self.next()
            if message is None or isinstance(message, grpc.RpcError):
                raise AssertionError(f"the stream has ended: {message}")
            if message.WhichOneof("update") == kind:
                return getattr(message, kind)
        raise AssertionError(f"no {kind} among 1,000 messages")

    def arbitrate(self, **changes):
        """Send an arbitration update, and return the status code of the answer."""
        update = p4r.MasterArbitrationUpdate(device_id=changes.get("device_id", self.device_id))
        if role := changes.get("role", self.role):
            update.role.name = role
        if election_id := changes.get("election_id", self.election_id):
            update.election_id.CopyFrom(encode_uint128(election_id))
        self.send(arbitration=update)
        return self.receive_next("arbitration").status.code

    def close(self):
        self._requests.put(None)
        self._thread.join(WAIT_S)

    def _make_fields(self):
        return {
            "device_id": self.device_id,
            "role": self.role,
            "election_id": encode_uint128(self.election_id),
        }

    def write(self, *updates, atomicity=p4r.WriteRequest.CONTINUE_ON_ERROR):
        self.stub.Write(
            p4r.WriteRequest(updates=updates, atomicity=atomicity, **self._make_fields())
        )

    def insert(self, **entity):
        self.write(make_insertion(**entity))

    def modify(self, **entity):
        self.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(**entity)))

    def delete(self, **entity):
        self.write(p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(**entity)))

    def read(self, **entity):
        """Read entities of one kind."""
        ((kind, _),) = entity.items()
        request = p4r.ReadRequest(
            device_id=self.device_id, role=self.role, entities=[p4r.Entity(**entity)]
        )
        return [
            getattr(each, kind)
            for response in self.stub.Read(request)
            for each in response.entities
        ]

    def set_pipeline(self, config=None, action="VERIFY_AND_COMMIT"):
        request = p4r.SetForwardingPipelineConfigRequest(action=action, **self._make_fields())
        if config is not None:
            request.config.CopyFrom(config)
        self.stub.SetForwardingPipelineConfig(request)

    def get_pipeline(self, kind="ALL"):
        return self.stub.GetForwardingPipelineConfig(
            p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=kind)
        )


def make_insertion(**entity):
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(**entity))


def encode_uint128(number):
    return p4r.Uint128(high=number >> 64, low=number & ((1 << 64) - 1))


def decode_errors(error):
    """Return code and message of each update, from the error of a Write or Read."""
    assert error.code() == grpc.StatusCode.UNKNOWN
    (data,) = [value for key, value in error.trailing_metadata() if key == STATUS_KEY]
    status = rpc_status.Status.FromString(data)
    assert status.code == Code.UNKNOWN
    found = []
    for each in status.details:
        one = p4r.Error()
        assert each.Unpack(one)
        found.append((Code(one.canonical_code), one.message))
    return found


class Served:
    """A server over a simulated switch. Without `info`, it knows no pipeline."""

    _numbers = itertools.count()

    def __init__(self, directory: Path, pipeline=EDGE, info=EDGE_INFO, **settings):
        self._stack = ExitStack()
        self.switch = Simulated(pipeline, **settings)
        self._stack.callback(self.switch.close)
        self._device = Device(self.switch)
        if info is not None:
            self.adopt(info)
        self.gone = []
        service = Service(1, self._device, self.switch, self.switch, self.gone.append)
        self.address = f"unix:{directory}/p4rt.{next(self._numbers)}.sock"
        server = Server(service, self.address)
        server.start()
        self._stack.callback(server.stop)
        self._stack.callback(service.end_streams, None)

    def adopt(self, info):
        self._device.adopt(read_info(info))

    def channel(self):
        return self._stack.enter_context(grpc.insecure_channel(self.address))

    def session(self, **how):
        session = Session(self.channel(), **how)
        self._stack.callback(session.close)
        return session

    def close(self):
        self._stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
