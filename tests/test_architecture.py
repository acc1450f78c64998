"""The layout of style.md holds: layers, doors, sizes, names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db.models import ForeignKey

from mira_site.owned import Owned

ROOT = Path(__file__).parent.parent
APPS = tuple(name for name in ("conversations", "memory", "toolbox", "domaindocs", "usermodel")
             if (ROOT / name).is_dir())  # fmt: skip
DOORS = {"services", "selectors", "types"}
WIRING = {"mira_site"}  # may open any door
BANNED = re.compile(r"^(utils?|helpers?|common|misc|managers?|impl|.*_(utils?|helpers?|impl))$")
LINES_MAX = 450  # style.md: about 400
# From the lowest up; a foreign key is an import, so it points to the left or stays.
ORDER = [
    "accounts",
    "llm",
    "webhooks",
    "memory",
    "domaindocs",
    "usermodel",
    "toolbox",
    "conversations",
]


def modules() -> list[Path]:
    found = [
        path
        for package in ("mira_site", *APPS)
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
    ]
    assert len(found) > 50
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported(path: Path) -> Iterator[str]:
    """Dotted names of what a module imports, as far as they can name a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_contracts_of_the_import_linter_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()",
         "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_from_outside_an_app_is_its_doors():
    trespassing = []
    for path in modules():
        home = path.relative_to(ROOT).parts[0]
        for name in imported(path):
            app, _, inside = name.partition(".")
            if home in WIRING or app == home or app not in APPS:
                continue
            room = inside.partition(".")[0]
            may_point_to_a_row = path.name == "models.py" or "models" in path.parts
            is_a_tool = "tools" in path.parts and (app, room) == ("toolbox", "registry")
            if is_a_tool:  # a tool lives in the toolbox or in the app that it needs
                continue
            if room not in DOORS and not (room == "models" and may_point_to_a_row):
                trespassing.append(f"{name_of(path)}: {name}")
    assert trespassing == []


def test_a_foreign_key_points_downwards():
    upwards = [
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        if issubclass(model, Owned)
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey)
        and ORDER.index(field.related_model._meta.app_label) > ORDER.index(model._meta.app_label)
    ]
    assert upwards == []


def test_a_job_module_never_imports_the_services_of_its_own_app():
    """Edges and tasks do; so a service can enqueue a task without a circle. What the person says
    about a memory is a door of its own (memory/feedback.py): services.py is full.
    """
    edges = {"api", "views", "consumers", "admin", "tasks", "mcp", "forms", "adapter"} | {
        "feedback"
    }
    folders = {"management", "tools"}
    wrong = [
        name_of(path)
        for path in modules()
        if path.relative_to(ROOT).parts[0] in APPS
        and path.stem.rpartition("_")[2] not in edges
        and not folders & set(path.parts)
        and f"{path.relative_to(ROOT).parts[0]}.services" in set(imported(path))
    ]
    assert wrong == []


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_can_be_read_in_one_go(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    assert not BANNED.match(path.stem)
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", text)


def test_the_provider_is_talked_to_in_one_place():
    talking = {
        name_of(path)
        for path in modules()
        if any(name.partition(".")[0] == "anthropic" for name in imported(path))
    }
    assert talking == {"mira_site/llm/client.py"}


def test_importing_the_tasks_does_not_load_torch():
    script = (
        "import django, sys; django.setup();"
        "import conversations.tasks, memory.selectors, mira_site.celery;"
        "from importlib import import_module, util;"
        "util.find_spec('memory.tasks') and import_module('memory.tasks');"
        "sys.exit(' '.join({'torch', 'sentence_transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
