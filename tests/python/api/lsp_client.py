"""A client of the language server protocol: `weft lsp` as an editor starts it, over its standard input and output."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from typing import Any


class Client:
    """Speaks JSON-RPC with one server."""

    def __init__(self, **options: Any) -> None:
        command = [sys.executable, "-m", "weft", "lsp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.ids = iter(range(1, 1 << 30))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        params = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}
        self.server = self.request("initialize", params)
        self.notify("initialized", {})

    def _read(self) -> None:
        out = self.process.stdout
        while True:
            length = None
            while line := out.readline().strip():
                name, value = line.split(b":", 1)
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                self.messages.put(None)
                return
            self.messages.put(json.loads(out.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        """Give the result of a request; an error is a ValueError. Other messages of the server are ignored."""
        number = next(self.ids)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == number:
                if "error" in message:
                    raise ValueError(message["error"]["message"])
                return message["result"]

    def _next(self) -> dict[str, Any]:
        message = self.messages.get(timeout=120)
        assert message is not None, self.process.stderr.read().decode()
        return message

    def diagnostics(self, version: int | None) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version of a document."""
        while True:
            message = self._next()
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params.get("version") == version:
                    return params["diagnostics"]

    def open(self, uri: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(1)

    def change(self, uri: str, text: str, version: int) -> None:
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def hover(self, uri: str, text: str, at: str, nth: int = 0) -> str | None:
        """Return the server's hover text at the nth occurrence of a string; None if there is none."""
        start = -1
        for _ in range(nth + 1):
            start = text.index(at, start + 1)
        head = text[:start]
        column = len(head.rsplit("\n", 1)[-1].encode("utf-16-le")) // 2
        position = {"line": head.count("\n"), "character": column}
        said = self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
        return said and said["contents"]["value"]

    def close(self) -> int:
        self.request("shutdown", None)
        self.notify("exit", None)
        code = self.process.wait(timeout=60)
        self.reader.join(timeout=60)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        return code
