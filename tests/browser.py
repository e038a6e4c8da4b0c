"""A page in headless Chromium, controlled by DevTools protocol over a pipe."""

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

BINARIES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0  # seconds; the machine may be busy
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium() -> str | None:
    """The path of the browser, or None."""
    return next(filter(None, map(shutil.which, BINARIES)), None)


class Page:
    """An empty page; collects its `requests` and its `problems` (errors).

    Args:
        binary: The path of the browser.
        profile: An empty folder for the browser's profile.
        size: Width and height of the window.
    """

    def __init__(self, binary: str, profile: Path, size: tuple[int, int] = (900, 900)) -> None:
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._number, self._buffer = 0, b""
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._in, self._out = ours_in, ours_out
        # The browser reads from descriptor 3 and writes to 4.
        self._process = subprocess.Popen(
            [
                *("bash", "-c"),
                f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}',
                *("bash", binary, *FLAGS, f"--user-data-dir={profile}"),
                "--window-size={},{}".format(*size),
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """Ends the browser process."""
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Calls a method of the protocol and waits for its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        data = json.dumps(message | self._session).encode() + b"\0"
        os.write(self._out, data)
        while True:
            message = self._read()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            left = max(end - time.monotonic(), 0)
            if not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Waits until a JavaScript condition holds."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.05)

    def open(self, url: str) -> None:
        """Loads an address and waits until it is complete."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState == 'complete' && location.href != 'about:blank'")

    def point_at(self, selector: str, number: int = 0) -> None:
        """Moves the mouse over the middle of an element."""
        x, y = self.evaluate(
            "(() => { const box = document.querySelectorAll("
            f"{json.dumps(selector)})[{number}].getClientRects()[0];"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str, code: int, modifiers: int = 0) -> None:
        """Presses and releases a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
            )
