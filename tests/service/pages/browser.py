"""A real browser without a window, driven over a pipe by the protocol of its developer tools."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60


class PageLeft(Exception):
    """The page went away while it was asked; the next one can be asked."""


class Tab:
    """One tab: go somewhere, run a program, take a picture. What it asked for and complained about is kept."""

    def __init__(self, commands: int, events: int) -> None:
        self._commands, self._events = commands, events
        self._number, self._rest, self._session = 0, b"", ""
        self.addresses: list[str] = []
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **words: Any) -> Any:
        """A command, and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": words}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                if "navigated or closed" in found.get("error", {}).get("message", ""):
                    raise PageLeft
                assert "error" not in found, found
                return found["result"]

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            part = os.read(self._events, 1 << 20)
            assert part, "the browser has gone"
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        found = json.loads(line)
        words = found.get("params", {})
        match found.get("method"):
            case "Network.requestWillBeSent":
                self.addresses.append(words["request"]["url"])
            case "Log.entryAdded" if words["entry"]["level"] in ("warning", "error"):
                self.complaints.append(words["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(words["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(words["args"]))
            case _:
                pass
        return found

    def run(self, program: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=program, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, program: str) -> None:
        """Wait until an expression is true; a page that is being left has no value."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                found = self.send("Runtime.evaluate", expression=program, returnByValue=True)
            except PageLeft:
                continue
            if found["result"].get("value") is True:
                return
            assert time.monotonic() < deadline, (program, self.run("document.body.innerText"))
            time.sleep(0.05)

    def go(self, address: str) -> None:
        """Open a page and wait for it; the old page is gone when the command is done."""
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def press(self, selector: str, then: str) -> None:
        """Press a button, and wait until something is true."""
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self.wait(then)

    def write(self, selector: str, text: str) -> None:
        """Type into a field, as if by keys."""
        self.run(f"(box => {{ box.focus(); box.select(); }})(document.querySelector({json.dumps(selector)}))")
        self.send("Input.insertText", text=text)

    def press_key(self, key: str) -> None:
        """A key, down and up."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind, more in (("keyDown" if text else "rawKeyDown", text), ("keyUp", {})):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def walk_to(self, selector: str) -> None:
        """Press the key Tab until an element has the focus, which must be seen."""
        for _ in range(60):
            if self.run(f"document.activeElement?.matches({json.dumps(selector)})"):
                assert self.run("getComputedStyle(document.activeElement).outlineStyle") != "none", selector
                return
            self.press_key("Tab")
        raise AssertionError(selector)

    def show(self, *, dark: bool, width: int) -> None:
        """Choose the colour scheme and the width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )

    def check_access(self, axe: str) -> list[str]:
        """The serious findings of axe-core in the page."""
        self.run(f"{axe}; true")
        found = self.run(
            "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(each => "
            "`${each.impact} ${each.id}: ${each.nodes.map(node => node.html.slice(0, 200)).join(' ')}`))"
        )
        return [each for each in found if each.startswith(("serious", "critical"))]

    def take_picture(self, file: Path) -> None:
        """The whole page as a picture."""
        made = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(made["data"]))


@contextmanager
def open_tab(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own, which is ended in any case."""
    hear, commands = os.pipe()
    events, tell = os.pipe()
    # The browser reads commands from descriptor 3 and writes to descriptor 4.
    line = f'exec "$0" "$@" 3<&{hear} 4>&{tell}'
    with subprocess.Popen(  # noqa: S603  # our own pages in our own browser
        ["/bin/bash", "-c", line, str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(hear, tell), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(hear)
        os.close(tell)
        try:
            yield Tab(commands, events)
        finally:
            process.kill()
            process.wait()
            os.close(commands)
            os.close(events)
