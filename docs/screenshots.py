"""Pictures for the README: starts MIRA with a scripted model, lives a day with it, and looks.

./script/screenshots writes docs/images/*.png.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.fake_anthropic import FakeAnthropic

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PORT = 8797
ADDRESS = f"http://127.0.0.1:{PORT}"
PASSWORD = "A-lantern-in-the-harbour-7"  # noqa: S105 (of an account that lives for a minute)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WAIT_MS = 60_000

FIRST = (
    "I bought a boat! She is called Merula and lies in Trieste. My sister Jana and I want to sail "
    "to Rovinj at the end of May."
)
FIRST_REPLY = (
    "Merula, the blackbird: a good name for a boat that has to find her way home.\n\n"
    "Rovinj is about 40 nautical miles from Trieste, so at five knots it is **a long day**, or two "
    "short ones with a night in Piran. Do you want to plan it with Jana as one leg or two?"
)
SECOND = "Two legs, Jana gets seasick. And remind me how to turn a log speed into hours?"
SECOND_REPLY = (
    "Two legs then, with Piran between them.\n\n"
    "Time is distance over speed, $t = d / v$:\n\n"
    "| Leg | Distance | At 4 kn | At 5 kn |\n|---|---|---|---|\n"
    "| Trieste – Piran | 14 nm | 3 h 30 | 2 h 48 |\n| Piran – Rovinj | 28 nm | 7 h | 5 h 36 |\n\n"
    "```python\ndef hours(distance_nm: float, speed_kn: float) -> float:\n"
    '    """Sailing time in hours."""\n    return distance_nm / speed_kn\n```'
)
SUMMARY = {
    "trace": "On 28 November 2026 Alice told me that she bought a boat, Merula, which lies in "
    "Trieste. We planned a trip to Rovinj at the end of May with her sister Jana, in two legs with "
    "a night in Piran, because Jana gets seasick. I worked out the sailing times at 4 and 5 knots. "
    "The exact dates are still open.",
    "precis": "Alice bought the boat Merula in Trieste. We planned two legs to Rovinj with Jana.",
    "title": "The boat Merula and the trip to Rovinj",
    "complexity": 1,
}
MEMORIES = {
    "memories": [
        {"text": "Alice's boat is called Merula and lies in Trieste.", "messages": [1]},
        {
            "text": "Alice and her sister Jana want to sail to Rovinj at the end of May.",
            "messages": [1],
        },
        {"text": "Jana, Alice's sister, gets seasick.", "messages": [3]},
    ]
}
THIRD = "What should we pack for the trip to Rovinj?"
THIRD_REPLY = (
    "For Merula, two legs and the end of May:\n\n"
    "- **For Jana**: ginger, tablets for seasickness, and the seat by the helm.\n"
    "- Warm layers for the morning in Piran; the wind is cool until noon.\n"
    "- The harbour papers from Trieste, and cash for the berth.\n\n"
    "You still wanted to fix the dates. Shall we?"
)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mira-pictures-") as folder, FakeAnthropic() as fake:
        fake.on("summary").answers(SUMMARY)
        fake.on("extraction").answers(MEMORIES)
        log_path = Path(folder) / "serve.log"
        environment = {
            **os.environ,
            "MIRA_DATA_DIR": folder,
            "PORT": str(PORT),
            "ANTHROPIC_BASE_URL": fake.url,
        }
        with log_path.open("w") as log:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
            try:
                link = setup_link(log_path, server)
                with sync_playwright() as playwright:
                    path = shutil.which("chromium") or shutil.which("chromium-browser")
                    browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
                    take(browser, fake, link)
                    browser.close()
            finally:
                server.terminate()
                server.wait(timeout=60)
    return 0


def setup_link(log_path: Path, server: subprocess.Popen[bytes]) -> str:
    """The link that the first start prints."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        for word in log_path.read_text().split():
            if word.startswith(f"{ADDRESS}/setup/"):
                return word
        time.sleep(0.3)
    raise SystemExit(f"MIRA did not start:\n{log_path.read_text()[-2000:]}")


def take(browser: Browser, fake: FakeAnthropic, link: str) -> None:
    desk = browser.new_context(
        viewport={"width": 1280, "height": 860}, color_scheme="light", timezone_id="Europe/Vienna"
    )
    page = desk.new_page()
    page.goto(link)
    page.fill("input[name=username]", "Alice")
    page.fill("input[name=email]", "alice@example.org")
    for field in page.locator("input[type=password]").all():
        field.fill(PASSWORD)
    page.locator("main form button[type=submit]").click()
    expect(page.locator("textarea")).to_be_visible(timeout=WAIT_MS)
    shoot(page, "first-day")
    say(page, fake, FIRST, FIRST_REPLY, "as one leg or two?")
    say(page, fake, SECOND, SECOND_REPLY, "Sailing time in hours")
    shoot(page, "conversation")
    page.evaluate(COLLAPSE)
    say(page, fake, THIRD, THIRD_REPLY, "Shall we?")
    page.locator("details.surfaced summary").last.click()
    shoot(page, "remembered")
    page.goto(f"{ADDRESS}/memories/")
    shoot(page, "memories")
    phone = browser.new_context(
        viewport={"width": 390, "height": 844},
        color_scheme="dark",
        timezone_id="Europe/Vienna",
        storage_state=desk.storage_state(),
        device_scale_factor=2,
    )
    small = phone.new_page()
    small.goto(ADDRESS)
    expect(small.get_by_text("Shall we?").first).to_be_visible(timeout=WAIT_MS)
    shoot(small, "phone-dark")


COLLAPSE = """
async () => {
  const token = document.querySelector('meta[name="csrf-token"]').content;
  const headers = {'X-CSRFToken': token};
  await fetch('/api/v1/segments/collapse/', {method: 'POST', headers});
}
"""


def say(page: Page, fake: FakeAnthropic, text: str, reply: str, seen: str) -> None:
    fake.on("reply").says(reply)
    page.fill("textarea", text)
    page.keyboard.press("Enter")
    expect(page.get_by_text(seen).first).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=WAIT_MS)


def shoot(page: Page, name: str) -> None:
    page.wait_for_timeout(1200)  # fonts, scrolling and transitions come to rest
    page.screenshot(path=IMAGES / f"{name}.png")
    sys.stderr.write(f"docs/images/{name}.png\n")


if __name__ == "__main__":
    sys.exit(main())
