"""The supervisor: restarts, prefixed lines, and nobody left behind. Real processes throughout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent
PATIENCE_S = 20

# A supervisor of two children: each writes its pid to a file and stays.
SUPERVISED = """
import sys
from pathlib import Path
from mira_site.processes import Command
from mira_site.supervisor import StopRequested, Supervisor

def child(name, script, stage):
    argv = (sys.executable, "-u", "-c", script, str(Path(sys.argv[1]) / name))
    supervisor.start(Command(name=name, argv=argv), stage=stage)

STAY = '''
import os, sys, time
open(sys.argv[1], "a").write(f"{os.getpid()}\\\\n")
print("hello from", os.path.basename(sys.argv[1]))
time.sleep(600)
'''
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + STAY
WITH_A_CHILD = '''
import os, subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1] + "-grandchild", "w").write(f"{grandchild.pid}\\\\n")
''' + STAY

with Supervisor() as supervisor:
    child("first", STAY, 0)
    child("second", globals()[sys.argv[2]], 1)
    supervisor.run()
"""


class Run:
    def __init__(self, folder: Path, second: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SUPERVISED, str(folder), second],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.until(lambda: self.pids("first") and self.pids("second"))

    def pids(self, name: str) -> list[int]:
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def everybody(self) -> list[int]:
        return [pid for name in ("first", "second", "second-grandchild") for pid in self.pids(name)]

    def until(self, holds: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def all_are_gone(self) -> bool:
        return not any(_lives(pid) for pid in self.everybody())


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    runs: list[Run] = []

    def start(second: str = "STAY") -> Run:
        runs.append(Run(tmp_path, second))
        return runs[-1]

    yield start
    for each in runs:
        each.process.kill()
        each.process.wait()


def test_a_dead_child_is_started_again_and_its_end_is_told(run):
    supervised = run()
    os.kill(supervised.pids("first")[0], signal.SIGKILL)
    supervised.until(lambda: len(supervised.pids("first")) == 2)
    assert _lives(supervised.pids("first")[1])
    told = supervised.log.read_text()
    assert "first was killed by SIGKILL." in told
    assert "first starts again in 1 s." in told


def test_a_childs_lines_carry_its_name(run):
    supervised = run()
    supervised.until(lambda: "second     | hello from second" in supervised.log.read_text())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everybody_and_the_exit_is_clean(run, number):
    supervised = run()
    supervised.process.send_signal(number)
    assert supervised.process.wait(timeout=PATIENCE_S) == 0
    assert supervised.all_are_gone()


def test_what_a_child_started_ends_with_it(run):
    supervised = run("WITH_A_CHILD")
    supervised.process.send_signal(signal.SIGTERM)
    supervised.process.wait(timeout=PATIENCE_S)
    assert len(supervised.everybody()) == 3
    assert supervised.all_are_gone()


def test_nobody_outlives_a_killed_supervisor(run):
    supervised = run()
    supervised.process.kill()
    supervised.process.wait()
    supervised.until(supervised.all_are_gone, timeout_s=5)


def test_a_child_deaf_to_the_signal_is_killed_at_the_second_request(run):
    supervised = run("DEAF")
    supervised.process.send_signal(signal.SIGINT)
    supervised.until(lambda: not _lives(supervised.pids("first")[0]))
    assert _lives(supervised.pids("second")[0])
    supervised.process.send_signal(signal.SIGINT)
    assert supervised.process.wait(timeout=5) == 0
    assert supervised.all_are_gone()
