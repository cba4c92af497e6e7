# SPDX-License-Identifier: Apache-2.0
"""Names and widths from the JSON of a pipeline, which the Thrift calls of simple_switch need."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from nagi_p4.notifications import DigestMessage
from nagi_p4.operations import INVALID, NOT_FOUND, Answer, Refused, parse_number


def encode_number(value: Any, bits: int, name: str) -> bytes:
    """Encode a number as big-endian octets. Their number is the smallest that holds `bits` bits.

    Args:
        value: An integer, "0x..." or an address.
        bits: Width of the field.
        name: Name of the field's table or action, for error messages.

    Raises:
        Refused: `value` is not a number, or has more than `bits` bits.
    """
    number = parse_number(value)
    if number < 0 or number >> bits:
        raise Refused(f"{name}: {value} does not fit {bits} bits", INVALID)
    return number.to_bytes((bits + 7) // 8, "big")


class Pipeline:
    """The names and widths of a P4 pipeline.

    Args:
        json: The parsed JSON that p4c makes for bmv2.

    Attributes:
        value_sets: Width in bits of the values of each value set, by name.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: `json` is not the JSON of a pipeline.
    """

    def __init__(self, json: Mapping[str, Any]) -> None:
        types = {each["name"]: each["fields"] for each in json["header_types"]}
        self._fields = {
            header["name"]: {field[0]: field[1] for field in types[header["header_type"]]}
            for header in json["headers"]
        }
        self._tables: dict[str, Mapping[str, Any]] = {
            table["name"]: table for control in json["pipelines"] for table in control["tables"]
        }
        self._keys = {
            name: [(key["match_type"], self._find_width(key["target"])) for key in table["key"]]
            for name, table in self._tables.items()
        }
        self._actions = {
            action["name"]: [parameter["bitwidth"] for parameter in action["runtime_data"]]
            for action in json["actions"]
        }
        self._action_names = {
            action["id"]: action["name"] for action in json["actions"] if "id" in action
        }
        self._json = json
        self.value_sets: dict[str, int] = {
            value_set["name"]: value_set["compressed_bitwidth"] for value_set in json["parse_vsets"]
        }
        self._digests = {
            digest["id"]: (
                digest["name"],
                [(self._find_width(element["value"]) + 7) // 8 for element in digest["elements"]],
            )
            for digest in json["learn_lists"]
        }

    def _find_width(self, target: Sequence[str]) -> int:
        header, field = target
        return 1 if field == "$valid$" else int(self._fields[header][field])

    def list_keys(self, table: str) -> list[tuple[str, int]]:
        """Return match kind and width in bits of each field of a table's key.

        Raises:
            Refused: There is no such table.
        """
        if table not in self._keys:
            raise Refused(f"there is no table {table}", NOT_FOUND)
        return self._keys[table]

    def list_keys_for(self, table: str, match: Sequence[Any]) -> list[tuple[str, int]]:
        """Return list_keys() of a table, after a check that `match` has one element per field.

        Raises:
            Refused: There is no such table, or `match` does not have one element per field.
        """
        keys = self.list_keys(table)
        if len(keys) != len(match):
            raise Refused(f"table {table} has {len(keys)} keys; {len(match)} are given", INVALID)
        return keys

    def is_indirect(self, table: str) -> bool:
        """Return whether a table has an action profile; False if there is no such table."""
        return str(self._tables.get(table, {}).get("type", "simple")) != "simple"

    def has_counter(self, table: str) -> bool:
        return bool(self._tables.get(table, {}).get("with_counters"))

    def has_meter(self, table: str) -> bool:
        return self._tables.get(table, {}).get("direct_meters") is not None

    def find_table(self, id: int) -> str:
        """Return the name of the table that has the id `id`.

        Raises:
            Refused: There is no such table.
        """
        for name, table in self._tables.items():
            if table.get("id") == id:
                return name
        raise Refused(f"there is no table with id {id}", NOT_FOUND)

    def find_initial_default(self, table: str) -> Answer:
        """Return the default entry that the pipeline declares for a table.

        Returns:
            A dict with "action" and "data", or {} if the pipeline declares no default entry.
        """
        default = self._tables.get(table, {}).get("default_entry")
        if default is None:
            return {}
        data = [parse_number(value) for value in default.get("action_data", ())]
        return {
            "action": self._action_names.get(default["action_id"]),
            "data": [value if value >> 64 == 0 else hex(value) for value in data],
        }

    def find_size(self, kind: str, name: str) -> int:
        """Return the number of cells of a counter array or meter array.

        Args:
            kind: "counter_arrays" or "meter_arrays".
            name: Name of the array.

        Raises:
            Refused: There is no such array.
        """
        for array in self._json.get(kind, ()):
            if array["name"] == name:
                return int(array["size"])
        raise Refused(f"the pipeline has no {name} in {kind}", NOT_FOUND)

    def encode_data(self, action: str, data: Sequence[Any]) -> list[bytes]:
        """Encode the data of an action as octets.

        Args:
            action: Name of the action.
            data: One value per parameter.

        Raises:
            Refused: There is no such action, it has another number of parameters, or a value does
                not fit its parameter.
        """
        if action not in self._actions:
            raise Refused(f"there is no action {action}", NOT_FOUND)
        widths = self._actions[action]
        if len(widths) != len(data):
            raise Refused(
                f"action {action} has {len(widths)} parameters; {len(data)} are given", INVALID
            )
        return [encode_number(value, bits, action) for value, bits in zip(data, widths)]

    def decode_digests(self, message: DigestMessage) -> Iterator[dict[str, Any]]:
        """Yield the digests of a notification in the form of Switch.read_digests()."""
        name, sizes = self._digests[message.list_id]
        start = 0
        for _ in range(message.samples):
            values = []
            for size in sizes:
                values.append(int.from_bytes(message.data[start : start + size], "big"))
                start += size
            yield {"digest": name, "values": values}
