# SPDX-License-Identifier: Apache-2.0
"""Test how nagi reads YAML: plain data with lines, limits, and a cure for each common mistake."""

from __future__ import annotations

import pytest
from nagi.spec.yaml_source import MAX_BYTES, MAX_NODES, read_yaml
from nagi.spec.yaml_syntax import MAX_DEPTH
from nagi_contracts.errors import InputError


@pytest.fixture
def read(tmp_path):
    def read(content, **limits):
        path = tmp_path / "file.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_yaml(path, **limits)

    return read


@pytest.fixture
def refused(read, tmp_path):
    """Return a function that returns the message about a file, without the file's name."""

    def refused(content, **limits):
        with pytest.raises(InputError) as caught:
            read(content, **limits)
        return str(caught.value).removeprefix(f"{tmp_path / 'file.yaml'}:")

    return refused


def test_values_are_what_yaml_1_2_says(read):
    data = read(
        "a: [1, -2, 0x1F, 0o17, 1_000, 1.5, 1e3, true, False, null, ~]\n"
        "b: [yes, on, 2001-01-01, 12:30, =, 100 Mb/s, '1', \"t\\u00e9\", !!str 5]\n"
        "5: {x: }\n"
        "c: |\n  two\n  lines\n"
    ).data
    assert data["a"] == [1, -2, 31, 15, 1000, 1.5, 1000.0, True, False, None, None]
    assert [type(value) for value in data["a"][5:9]] == [float, float, bool, bool]
    assert data["b"] == ["yes", "on", "2001-01-01", "12:30", "=", "100 Mb/s", "1", "té", "5"]
    assert data["5"] == {"x": None}
    assert data["c"] == "two\nlines\n"


def test_lines_of_all_paths(read):
    source = read("a:\n  b: 1\n  c: [x,\n      y]\nd: &d {e: 1}\nf: {<<: *d, g: 2}\nh: [*d]\n")
    lines = {
        ("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", 1): 4, ("d", "e"): 5, ("f",): 6,
        ("f", "e"): 6, ("f", "g"): 6, ("h", 0): 7, ("a", "c", 1, "further"): 4, ("nowhere",): 1,
    }  # fmt: skip
    assert {key_path: source.find_line(key_path) for key_path in lines} == lines


def test_merges_bring_what_is_not_there(read):
    data = read(
        "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {x: 0, <<: [*a, *b]}\nd: &d {<<: *b, w: 5}\n"
        "e: {<<: *d}\n"
    ).data
    assert data["c"] == {"x": 0, "y": 2, "z": 4}
    assert list(data["e"]) == ["w", "y", "z"]


def test_line_ends_and_byte_order_marks(read):
    text = "a: 1\nb: [x, y]\n"
    for content in (
        text.replace("\n", "\r\n"), text.replace("\n", "\r"), b"\xef\xbb\xbf" + text.encode()
    ):  # fmt: skip
        source = read(content)
        assert source.data == {"a": 1, "b": ["x", "y"]}
        assert source.find_line(("b",)) == 2


# (file, line, complaint, cure)
MISTAKES = [
    ("a:\n\tb: 1\n", 2, "a tab in `b: 1`", "indent with spaces"),
    ("a:\n  delay:45 ms\n  rate: 1\n", 2, "no space after the colon in `delay:45 ms`", "write `k"),
    ("a: 1\nrate:5\n", 2, "no space after the colon in `rate:5`", "write `key: value`"),
    ("a: 1\njust text\nb: 2\n", 2, "no colon in `just text`", "write `key: value`"),
    ("just text\na: 1\n", 1, "no colon in `just text`", "write `key: value`"),
    ("title: A: b\n", 1, "a second colon in a value in `title: A: b`", 'quote the value: "..."'),
    ("a: %5\n", 1, "a value that begins with % in `a: %5`", 'quote it: "..."'),
    ("a: @x\n", 1, "a value that begins with @ in `a: @x`", 'quote it: "..."'),
    ("a: `x`\n", 1, "a value that begins with ` in `a: `x``", 'quote it: "..."'),
    ("a: *x\n", 1, "an alias *x without its anchor &x before it in `a: *x`", "define the anchor"),
    ("a: & b\n", 1, "a value that begins with & or * in `a: & b`", 'quote it: "..."'),
    ("a: [1, 2\nb: 3\n", 1, "a [ that is not closed, or entries without a comma", "close it with"),
    ("a: [1, 2\n", 1, "a [ that is not closed, or entries without a comma", "close it with ]"),
    ("x: 1\na: {b: 1\n", 2, "a { that is not closed, or entries without a comma", "close it with"),
    ("a: {b: 1 c: 2}\n", 1, "a { that is not closed, or entries without a comma", "close it with"),
    ("a: 1\nb: [2]]\n", 2, "a ] outside of brackets in `b: [2]]`", "remove it, or quote"),
    ('a: "x\nb: 1\n', 1, 'a quote that is not closed in `a: "x`', "close it; write ''"),
    ("a: 1\nb: 'it's\n", 2, "text after a closing quote or bracket in `b: 'it's`", "remove it, or"),
    ('a: "x" y\n', 1, 'text after a closing quote or bracket in `a: "x" y`', "remove it, or quot"),
    ('a: "\\q"\n', 1, 'an escape (\\) that does not exist in `a: "\\q"`', "write \\\\ for \\"),
    ("a:\n  b: 1\n   c: 2\n", 3, "a line that is indented farther than the one before", "indent"),
    ("a:\n  b: 1\n c: 2\n", 3, "a line that is not indented as the others", "indent keys of a ma"),
    ("a:\n  - 1\n  b: 2\n", 3, "a line that is not indented as the others", "indent keys of a ma"),
    ("a: - 1\n", 1, "a list that begins behind a key in `a: - 1`", "begin it on the next line"),
    ("a: > 5\n", 1, "text behind | or > in `a: > 5`", "begin the text on the next line, or quote"),
    ("a: 1\n---\nb: 2\n", 2, "a second document in `---`", "remove the line"),
    ("a: 1\nb: 2\na: 3\n", 3, "key 'a' is given twice, first in line 1", "remove one"),
    ("a: !x [1]\n", 1, "unknown tag !x", "remove it; quote a text that begins with !"),
    ("a: !!set {b}\n", 1, "unknown tag !!set", "remove it"),
    ("a: !!int x\n", 1, "'x' is not a number", "write digits, or quote it as a text"),
    ("a: {{ x }}\n", 1, "a mapping as a key", "write a name before the colon; quote a text that"),
    ("a: {[x, y]: 1}\n", 1, "a list as a key", "write a name before the colon"),
    ("a: {<<: 5}\n", 1, "`<<` merges the text '5'", "give a mapping, or a list of mappings"),
    ("- 1\n", 1, "a list in place of a mapping", "write `key: value` lines"),
    ("text\n", 1, "the text 'text' in place of a mapping", "write `key: value` lines"),
    ("", 0, "the file has no content", "write `key: value` lines"),
    ("# nothing\n", 0, "the file has no content", "write `key: value` lines"),
    # Not a text
    ("a: 1\nb: \x07\n", 2, "control character U+0007", "remove it, or give a text file"),
    ("a: 1\nb: \x00\n", 2, "control character U+0000", "remove it, or give a text file"),
    ('a: 1\nb: "\\0"\n', 2, "a text with control character U+0000", "remove it"),
    ('"a\\e": 1\n', 1, "a text with control character U+001B", "remove it"),
    ('a: "\\ud800"\n', 1, "a text with control character U+D800", "remove it"),
    ('a: "\\U00110000"\n', 0, "not YAML: chr() arg not in range", "write texts without \\ escapes"),
    (b"a: 1\nb: \xff\n", 2, "byte 0xff is not UTF-8", "give a text file, saved in UTF-8"),
    ("a: 1\n".encode("utf-16"), 0, "the file is in UTF-16", "save it in UTF-8"),
    # Limits
    ("a: " + "[" * 100, 1, f"nested more than {MAX_DEPTH} deep", "nest less"),
    ("a: " + "[" * 1000, 1, f"nested more than {MAX_DEPTH} deep", "nest less"),
    ("x" * (MAX_BYTES + 1), 0, "the file has more than 250,000 bytes", "give the path of a YAML"),
    (f"a: {'9' * 5000}\n", 1, "a number of 5,000 characters", "write at most 100, or quote it"),
    ("a: &a [*a]\n", 1, "an alias (`*name`) within its own anchor", "remove it"),
    ("a: &a {<<: *a}\n", 1, "a mapping that `<<` merges into itself", "remove it"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "complaint", "cure"), MISTAKES)
def test_mistakes_are_named_with_line_and_cure(refused, content, line, complaint, cure):
    message = refused(content)
    assert message.startswith(f"{line}: {complaint}" if line else f" {complaint}"), message
    assert f"; {cure}" in message
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize("first", ["[x, x]", "{}", "{k: x}"])
@pytest.mark.parametrize("use", ["[{0}, {0}, {0}]", "{{p: {0}, q: {0}}}", "{{<<: [{0}, {0}]}}"])
def test_aliases_do_not_multiply_without_limit(refused, first, use):
    if first[0] == "[" and "<<" in use:
        first = "{k: x, l: x}"
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} {use.format(f'*a{n - 1}')}" for n in range(1, 40)]
    message = refused("\n".join(lines))
    assert f"more than {MAX_NODES:,} values, those of aliases" in message


def test_long_chains_of_merges_are_refused(refused):
    chain = "\n".join(["a0: &a0 {}", *(f"a{n}: &a{n} {{<<: *a{n - 1}}}" for n in range(1, 400))])
    assert "nested more than 64 deep; merge less" in refused(chain)


def test_as_many_values_as_the_limit_says_are_read(read, refused):
    assert len(read("a: [1, 2, 3, 4, 5, 6, 7, 8]\n", max_nodes=10).data["a"]) == 8
    assert "more than 10 values" in refused("a: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", max_nodes=10)
    depth = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert read(f"a: {depth}\n").data
    assert "nested more" in refused(f"a: [{depth}]\n")
