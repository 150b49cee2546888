"""A headless browser that scripts/dev/site, history and pictures drive, and the checker axe-core."""

import base64
import json
import os
import shutil
import subprocess
import sys

from places import TARGET, npm

try:
    from PIL import Image
except ImportError:
    Image = None

AXE = "axe-core@4.14.1"
HEIGHT = 900
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """Returns the path of the browser, or None if none is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser that is driven over a pair of pipes."""

    def __init__(self, directory):
        program = find() or sys.exit("install chromium")
        commands, self.commands = os.pipe()
        self.events, events = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={directory}", "about:blank"]
        script = f'exec "$@" 3<&{commands} 4>&{events}'
        self.process = subprocess.Popen(["sh", "-c", script, "sh", program, *options], pass_fds=(commands, events),
                                        stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(commands)
        os.close(events)
        self.buffer, self.number, self.session, self.requests, self.loaded = b"", 0, None, [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page.enable", "Network.enable", "Runtime.enable"):
            self.call(name)
        # The pages permit no scripts; the checker is one.
        self.call("Page.setBypassCSP", enabled=True)

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.events, 1 << 16)
            if not part:
                sys.exit("the browser has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        self.loaded |= message.get("method") == "Page.loadEventFired"
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address, width, scheme, height=HEIGHT):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        # Another place on the same page would not load it again.
        for address in ("about:blank", address):
            self.requests, self.loaded = [], False
            self.call("Page.navigate", url=address)
            while not self.loaded:
                self.read()

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{result['exceptionDetails']}")
        return result["result"].get("value")

    def tab(self):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        # 64 colours are enough for text, and make a third of the size.
        if Image:
            Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)

    def close(self):
        self.process.terminate()
        self.process.wait()


def checker():
    """Returns the script of axe-core, which npm installs into the target directory."""
    directory = TARGET / "axe"
    script = directory / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        shutil.which("npm") or sys.exit("install npm")
        npm(directory, "--silent", AXE)
    return script.read_text()
