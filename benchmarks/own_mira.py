"""A MIRA of its own for a benchmark: started on an empty data directory, ended with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMira:
    address: str
    environment: dict[str, str]

    def run(self, code: str) -> str:
        """Run Python inside this MIRA (`manage.py shell`); what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
            cwd=ROOT,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def token(self, username: str, password: str) -> str:
        body = json.dumps({"username": username, "password": password}).encode()
        request = urllib.request.Request(
            f"{self.address}/api/v1/auth/token/", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            token: str = json.load(answer)["token"]
            return token


@contextmanager
def own_mira(*, port: int, **settings: str) -> Iterator[OwnMira]:
    """A running MIRA with these settings, gone afterwards with all it stored."""
    with tempfile.TemporaryDirectory(prefix="mira-bench-") as folder:
        environment = {**os.environ, "MIRA_DATA_DIR": folder, "PORT": str(port), **settings}
        log_path = Path(folder) / "serve.log"
        with log_path.open("w") as log:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
            try:
                _wait_ready(log_path, server)
                yield OwnMira(address=f"http://127.0.0.1:{port}", environment=environment)
            finally:
                server.terminate()
                server.wait(timeout=60)


def _wait_ready(log_path: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and server.poll() is None:
        if "MIRA is ready" in log_path.read_text():
            return
        time.sleep(0.2)
    raise SystemExit(f"MIRA did not start:\n{log_path.read_text()[-3000:]}")
