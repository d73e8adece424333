"""SECURITY.md says what holds: each item names tests of it, as many as it has sentences, and they are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ITEMS = (ROOT / "SECURITY.md").read_text().split("What is meant to be so")[0].split("\n- ")[1:]


def test_every_sentence_on_security_has_its_test():
    assert len(ITEMS) > 10
    for item in ITEMS:
        words, _, named = item.partition("<!--")
        tests = re.findall(r"(tests/\S+\.py)::(\w+)", named)
        sentences = re.split(r"(?<=[.])\s+(?=[A-Z`])", words.strip())
        assert len(tests) >= len(sentences), words
        for path, name in tests:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"


def test_options_that_are_named_exist():
    source = "".join(path.read_text() for path in (ROOT / "src" / "fourrates" / "cli").glob("*.py"))
    named = {option for item in ITEMS for option in re.findall(r"`(--[\w-]+)`", item)}
    assert {option for option in named if f'"{option}"' not in source} == set()


def test_actions_are_pinned_by_commit():
    workflows = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = re.findall(r"uses: (\S+)(.*)", "".join(workflows))
    assert len(workflows) == 2
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action
