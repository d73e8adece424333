"""A file is found by its name: what CONTRIBUTING.md says of where to change what."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = re.findall(r"^\| ([a-z].*?) \| (`.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_twenty_tasks_have_a_place():
    assert len(ROWS) >= 20
    assert len({task for task, _ in ROWS}) == len(ROWS)


def test_every_place_is_there():
    places = [place for _, several in ROWS for place in re.findall(r"`([^`]+)`", several)]
    assert [
        place for place in places if not any((root / place).exists() for root in (ROOT / "src/fourrates", ROOT))
    ] == []
