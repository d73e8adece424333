"""The page of the paper: everything on it is text, and nothing runs."""

import base64
import hashlib
import re
from html import unescape

from paper.catalogue import ITEMS
from paper.page import Asked, page
from paper.tables import Table

NASTY = "{{ style }}</table><script>alert(1)</script>"


def made():
    table = Table(columns=[NASTY, "difference"], rows=[[NASTY, NASTY]], records=[], notes=[NASTY])
    return page(Asked(2, 0, True, (NASTY,)), {ITEMS[0]: table}, {})


def test_names_and_cells_are_text():
    text = made()
    assert "<script" not in text
    assert text.count("{{ style }}&lt;/table&gt;") == 5  # a heading, two cells, a note and the command


def test_the_policy_allows_the_style_of_the_page_and_no_script():
    text = made()
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.split(" ", 1) for rule in unescape(policy).split("; "))
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert rules["style-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["script-src"] == "'none'"


def test_the_command_on_the_page_can_be_pasted_into_a_shell():
    assert Asked(2, 0, True, ("a; b",)).command == "python -m paper --runs 2 --seed 0 --quick --only 'a; b'"
