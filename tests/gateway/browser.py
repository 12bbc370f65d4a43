"""A real browser without a window, controlled over its debugging protocol."""

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no Chromium on this machine (for Debian: apt-get install chromium)"
)
_PATIENCE = 60.0


class Page:
    """One page. problems: what it wrote to its console, threw, or was refused by its policy. asked: addresses it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.problems: list[str] = []
        self.asked: list[str] = []
        self._socket = socket
        self._number = 0

    async def tell(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command, and what it gave."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            told = json.loads((await self._socket.receive(_PATIENCE)).data)
            if told.get("id") == self._number:
                return dict(told.get("result", {}))
            self._heard(told)

    async def value(self, expression: str) -> object:
        """What an expression is in the page."""
        found = await self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait for it to be true."""
        for _ in range(int(_PATIENCE * 10)):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{expression} did not come true; the page says: {await self.text()}")

    async def text(self) -> str:
        """What a person reads on it."""
        return str(await self.value("document.body.innerText"))

    async def press(self, key: str, text: str = "") -> None:
        """A key, down and up. text: what it types."""
        await self.tell("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        await self.tell("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self, file: Path, height: int) -> None:
        """Write what is seen of it from its top to this height, as PNG."""
        width = await self.value("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = await self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(taken["data"]))

    async def look(self, width: int, *, dark: bool = False) -> None:
        """How wide it is, and in which light."""
        await self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        light = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[light])

    def _heard(self, told: dict[str, Any]) -> None:
        match told.get("method"):
            case (
                "Runtime.exceptionThrown"
                | "Log.entryAdded"
                | "Runtime.consoleAPICalled"
                | "Page.javascriptDialogOpening"
            ):
                self.problems.append(json.dumps(told["params"]))
            case "Network.requestWillBeSent":
                self.asked.append(told["params"]["request"]["url"])


@asynccontextmanager
async def browsing(address: str, folder: Path) -> AsyncIterator[Page]:
    """A page at an address, in a browser of its own."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={folder}"]
    process = subprocess.Popen(  # noqa: ASYNC220, S603 -- our own; it starts at once
        [BROWSER, *flags, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # no pipe: a helper of the browser may outlive it and keep a pipe open
        start_new_session=True,
    )
    try:
        where = await _listening(folder / "DevToolsActivePort")
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://{where}/json") as answer:
                tabs = json.loads(await answer.text())
            tab = next(tab for tab in tabs if tab["type"] == "page")
            async with client.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.tell(f"{domain}.enable")
                await page.tell("Page.navigate", url=address)
                yield page
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(_PATIENCE)


async def _listening(told: Path) -> str:
    for _ in range(int(_PATIENCE * 10)):
        if (port := _port_in(told)) is not None:
            return f"127.0.0.1:{port}"
        await asyncio.sleep(0.1)
    raise AssertionError("the browser did not start")


def _port_in(told: Path) -> str | None:
    """Return the port that the browser wrote into a file, in a line of its own."""
    lines = told.read_text().splitlines(keepends=True) if told.exists() else []
    return lines[0].strip() if lines and lines[0].endswith("\n") else None
