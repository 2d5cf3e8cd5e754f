"""`weft lsp`: the server's answers about kernels, as an editor opens, changes and points at them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from lsp_client import Client


@pytest.fixture
def client():
    client = Client()
    yield client
    if client.process.poll() is None:
        assert client.close() == 0


KERNEL = """from weft import cuda


@cuda.jit("void(float32[:], int32)")
def k(x, n):
    i = cuda.grid(1)
    é = "\U0001f600"; half = x[i] * 0.5
    if i < n:
        x[i] = half
"""


def test_diagnostics_follow_the_text(client, tmp_path):
    uri = (tmp_path / "k.py").as_uri()
    assert client.server["capabilities"]["hoverProvider"] is True
    assert client.server["serverInfo"]["name"] == "weft"
    wrong = KERNEL.replace("x[i] = half", "x[i] = hafl")
    (error,) = [one for one in client.open(uri, wrong) if one["severity"] == 1]
    assert (error["code"], error["source"]) == ("E0201", "weft")
    assert error["message"] == "name `hafl` is not defined\nhelp: did you mean `half`?"
    assert error["range"] == {"start": {"line": 8, "character": 15}, "end": {"line": 8, "character": 19}}
    # Changes that arrive together are checked once, the last of them.
    client.change(uri, wrong + "\n", 2)
    client.change(uri, KERNEL.replace('"void(float32[:], int32)"', '"void(float32[:])"'), 3)
    errors = [one for one in client.diagnostics(3) if one["severity"] == 1]
    assert [one["code"] for one in errors] == ["E0206"]
    client.change(uri, KERNEL, 4)
    assert all(one["severity"] == 4 for one in client.diagnostics(4))
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.diagnostics(None) == []


def test_float64_that_creeps_in_is_a_hint_in_units_of_utf_16(client, tmp_path):
    uri = (tmp_path / "k.py").as_uri()
    (hint,) = client.open(uri, KERNEL)
    assert (hint["severity"], hint["code"]) == (4, "E0219")
    assert "computes as float64" in hint["message"]
    assert "help: " in hint["message"]
    line = KERNEL.splitlines()[6]
    start = len(line[: line.index("x[i] * 0.5")].encode("utf-16-le")) // 2
    assert hint["range"]["start"] == {"line": 6, "character": start}


def test_without_notes_there_is_no_hint(tmp_path):
    client = Client(notes=False)
    assert client.open((tmp_path / "k.py").as_uri(), KERNEL) == []
    assert client.close() == 0


def test_labels_are_related_places(client, tmp_path):
    text = KERNEL.replace("half = x[i] * 0.5", "half = 1\n    if n > 2:\n        half = x")
    (error,) = [one for one in client.open((tmp_path / "k.py").as_uri(), text) if one["severity"] == 1]
    assert error["code"] == "E0203"
    related = error["relatedInformation"]
    assert len(related) == 2
    assert sorted(one["location"]["range"]["start"]["line"] for one in related) == [6, 8]
    assert all(one["location"]["uri"].endswith("/k.py") and one["message"] for one in related)


def test_hover_shows_types(client, tmp_path):
    uri = (tmp_path / "k.py").as_uri()
    client.open(uri, KERNEL)
    assert client.hover(uri, KERNEL, "x, n)") == "```python\nx: array(float32, 1d, A)\n```"
    assert client.hover(uri, KERNEL, "i = cuda") == "```python\ni: int64\n```"
    # After a character of two UTF-16 code units.
    assert "half: float64" in client.hover(uri, KERNEL, "half")
    assert client.hover(uri, KERNEL, "half", nth=1) == "```python\nhalf: float64\n```"
    assert client.hover(uri, KERNEL, "import") is None
    assert client.hover(uri, KERNEL, "if i <") is None


def test_hover_shows_each_signature_and_the_functions_that_a_kernel_calls(client, tmp_path):
    text = """from weft import cuda


@cuda.jit
def twice(v):
    both = v + v
    return both


@cuda.jit(["void(float32[:])", "void(int32[:, :])"])
def k(x):
    y = x
    x[0] = twice(y.size)


@cuda.jit
def free(x):
    total = x[0]
"""
    uri = (tmp_path / "k.py").as_uri()
    client.open(uri, text)
    said = client.hover(uri, text, "y = x")
    assert "y: array(float32, 1d, A)  # k(array(float32, 1d, A))\n" in said
    assert "y: array(int32, 2d, A)  # k(array(int32, 2d, A))\n" in said
    assert client.hover(uri, text, "both") == "```python\nboth: int64\n```"
    # For a kernel without a signature, the server reports that it has none.
    said = client.hover(uri, text, "total")
    assert "the kernel `free` has no signature" in said
    assert client.hover(uri, text, "x):\n    total").startswith("`x`: ")
    hinted = text.replace("@cuda.jit\ndef free", '# weft: sig = "void(float32[:])"\n# Halves.\n@cuda.jit\ndef free')
    client.change(uri, hinted, 2)
    assert client.hover(uri, hinted, "total") == "```python\ntotal: float32\n```"
    typed = text.replace("def free(x):", "def free(x: float32[:]):").replace("import cuda", "import cuda, float32")
    client.change(uri, typed, 3)
    assert client.hover(uri, typed, "total") == "```python\ntotal: float32\n```"


def test_a_misspelt_name_has_a_fix(client, tmp_path):
    wrong = KERNEL.replace("x[i] = half", "x[i] = hafl").replace("cuda.grid(1)", "cuda.gird(1)")
    uri = (tmp_path / "k.py").as_uri()
    client.open(uri, wrong)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    asked = {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}}
    fixes = client.request("textDocument/codeAction", asked)
    edits = {fix["title"]: fix["edit"]["changes"][uri] for fix in fixes}
    assert edits["Write `cuda.grid`"][0]["newText"] == "cuda.grid"
    lines = wrong.splitlines()
    for (edit,) in edits.values():
        start, end = edit["range"]["start"], edit["range"]["end"]
        line = lines[start["line"]]
        assert line[start["character"] : end["character"]] in ("cuda.gird", "hafl")
        lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
    client.change(uri, "\n".join(lines).replace("hafl", "half") + "\n", 2)
    assert all(one["severity"] == 4 for one in client.diagnostics(2))
    nothing = {"line": 0, "character": 0}
    assert client.request("textDocument/codeAction", asked | {"range": {"start": nothing, "end": nothing}}) == []


def test_hover_over_a_fault_explains_its_code(client, tmp_path):
    wrong = KERNEL.replace("x[i] = half", "x[i] = hafl")
    uri = (tmp_path / "k.py").as_uri()
    client.open(uri, wrong)
    assert "# E0201" in client.hover(uri, wrong, "hafl")


def test_an_imported_file_is_read_and_told_of(client, tmp_path):
    (tmp_path / "a b").mkdir()
    helper = tmp_path / "a b" / "helper.py"
    helper.write_text("from weft import cuda\n\n\n@cuda.jit(device=True)\ndef f(v):\n    return v + missing\n")
    text = "from helper import f\n" + KERNEL.replace("x[i] = half", "x[i] = f(half)")
    uri = (tmp_path / "a b" / "k.py").as_uri()
    (error,) = [one for one in client.open(uri, text) if one["severity"] == 1]
    assert error["message"].startswith("name `missing` is not defined")
    (place,) = [one["location"] for one in error["relatedInformation"] if one["message"] == "here"]
    assert place["uri"] == helper.as_uri()
    assert place["range"]["start"]["line"] == 5
    # After a save, the files that import it are checked again.
    helper.write_text(helper.read_text().replace("missing", "1"))
    client.notify("textDocument/didSave", {"textDocument": {"uri": helper.as_uri()}})
    assert all(one["severity"] == 4 for one in client.diagnostics(1))


def test_files_without_kernels_are_left_alone(client, tmp_path):
    uri = (tmp_path / "plain.py").as_uri()
    assert client.open(uri, "def f(:\n    pass\n") == []
    assert client.hover(uri, "def f(:\n    pass\n", "f") is None


def test_broken_text_and_unknown_requests_end_nothing(client, tmp_path):
    uri = (tmp_path / "k.py").as_uri()
    broken = "import weft\n\ndef k(:\n"
    (error,) = client.open(uri, broken)
    assert error["code"] == "E0101"
    assert client.hover(uri, broken, "k") is None
    with pytest.raises(ValueError, match="does not serve textDocument/rename"):
        client.request("textDocument/rename", {})
    with pytest.raises(ValueError, match="missing field"):
        client.request("textDocument/hover", {})
    assert client.hover((tmp_path / "absent.py").as_uri(), "x", "x") is None
    client.change(uri, KERNEL, 2)
    assert all(one["severity"] == 4 for one in client.diagnostics(2))


def test_a_server_without_an_editor_ends():
    command = [sys.executable, "-m", "weft", "lsp"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=60)
    assert done.returncode != 0


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


HELLO = framed(
    json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}}
    ).encode()
)
GOODBYE = framed(b'{"jsonrpc": "2.0", "id": 9, "method": "shutdown"}') + framed(b'{"jsonrpc": "2.0", "method": "exit"}')


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{]", -32700), (b"\xff", -32700), (b"", -32700), (b"[]", -32600), (b'"text"', -32600), (b'{"x": 1}', -32600)],
)
def test_a_message_that_is_none_is_answered_and_the_server_goes_on(body, code):
    text = HELLO + framed(b'{"jsonrpc": "2.0", "method": "initialized", "params": {}}') + framed(body) + GOODBYE
    command = [sys.executable, "-m", "weft", "lsp"]
    done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    answers = [json.loads(part.split(b"\r\n\r\n")[1]) for part in done.stdout.split(b"Content-Length: ")[1:]]
    assert [answer.get("id") for answer in answers if "error" not in answer] == [1, 9]
    assert [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer] == [(None, code)]


@pytest.mark.parametrize("before", [b"", HELLO])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"Content-Length: 99999999999999\r\n\r\n{}", "a message of 99999999999999 bytes is larger than"),
        (b"Content-Length: many\r\n\r\n{}", 'the Content-Length "many" is not a number'),
        (b"Content-Type: x\r\n\r\n{}", "no Content-Length"),
        (b"Content-Length: 20\r\n\r\n{}", "the input ends after 2 of the 20 bytes"),
    ],
)
def test_a_header_that_makes_no_sense_ends_the_server_with_the_reason(before, text, words):
    command = [sys.executable, "-m", "weft", "lsp"]
    done = subprocess.run(command, input=before + text, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert "the client does not follow the protocol" in done.stderr.decode()
