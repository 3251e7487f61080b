"""A NATS server of a test's own, on a free port of loopback, which ends with the test."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness import WAIT_SECS, eventually

# Beside the python that runs this: there pip puts it.
PROGRAM = os.environ.get("NATS_SERVER") or str(Path(sys.executable).parent / "nats-server")


class NatsServer:
    def __init__(self, test, more=""):
        """`more` is what else its configuration says."""
        self.more = more
        self.dir = test.dir / "nats"
        self.dir.mkdir()
        self.log = self.dir / "log"
        self.port = -1
        self.process = None
        test.closing.append(self.stop)
        self.start()

    def start(self, jetstream=True):
        """On the port it had before, if it had one."""
        config = self.dir / "nats.conf"
        streams = f'jetstream {{ store_dir: "{self.dir / "store"}", sync_interval: always }}\n'
        listen = f'listen: "127.0.0.1:{self.port}"\n'
        config.write_text(listen + (streams if jetstream else "") + self.more)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(lambda: "Server is ready" in self.log.read_text(), "NATS is ready")
        told = re.search(r"client connections on 127\.0\.0\.1:(\d+)", self.log.read_text())
        self.port = int(told[1])

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        self.process.wait(WAIT_SECS)

    def stop(self):
        if self.process.poll() is None:
            self.kill()

    def env(self, **more):
        """What a server needs to keep its sessions here."""
        return {"STORE": f"nats://127.0.0.1:{self.port}", **more}
