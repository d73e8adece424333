"""The site that ``make docs`` built: links lead somewhere, nothing comes from elsewhere, every public name is told."""

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

import fourrates
import fourrates.evaluate
import fourrates.io
import fourrates.streams

SITE = Path(os.environ.get("FOURRATES_SITE", "."))
pytestmark = pytest.mark.skipif("FOURRATES_SITE" not in os.environ, reason="make docs builds what is tested here")


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded, self.tags = set(), [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.ids.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source") and "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loaded.append(given["href"])


@cache
def page(path):
    return Page(path)


def pages():
    return sorted(SITE.rglob("*.html"))


def target(path, link):
    """The file and anchor a link leads to."""
    parts = urlsplit(link)
    return (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve(), unquote(parts.fragment)


def test_every_link_within_the_site_leads_somewhere():
    broken = []
    for path in pages():
        for link in page(path).links:
            if urlsplit(link).scheme:
                continue
            file, anchor = target(path, link)
            if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in page(file).ids):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere():
    for path in pages():
        for link in page(path).loaded:
            assert not urlsplit(link).netloc, f"{path.relative_to(SITE)}: {link}"
            assert target(path, link)[0].is_file(), f"{path.relative_to(SITE)}: {link}"
    for style in SITE.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:|@import\s+['\"]?https?:", style.read_text(encoding="utf-8")), style


def test_every_page_of_the_source_is_there_and_can_be_reached():
    source = {path.relative_to("docs").with_suffix(".html") for path in Path("docs").rglob("*.md")}
    source = {path for path in source if path.parts[0] not in ("decisions", "design.html")}  # read in the repository
    assert source <= {path.relative_to(SITE) for path in pages()}
    seen, ahead = set(), [(SITE / "index.html").resolve()]
    while ahead:
        path = ahead.pop()
        if path in seen or path.suffix != ".html":
            continue
        seen.add(path)
        ahead += [target(path, link)[0] for link in page(path).links if not urlsplit(link).scheme]
    assert {(SITE / path).resolve() for path in source} <= seen


def test_every_page_is_there_as_markdown_and_listed_for_machines():
    listed = re.findall(r"\]\(([^)]+)\)", (SITE / "llms.txt").read_text(encoding="utf-8"))
    assert [link for link in listed if not (SITE / link).is_file()] == []
    source = {path.relative_to("docs") for path in Path("docs").rglob("*.md")}
    source = {path for path in source if path.parts[0] not in ("decisions", "design.md")}  # read in the repository
    assert {Path(link).with_suffix("") for link in listed} == {path.with_suffix("") for path in source}
    for path in source:
        assert "[[[" not in (SITE / path).read_text(encoding="utf-8")


def test_formulas_are_shown_without_a_script():
    assert "math" in page(SITE / "mathematics.html").tags
    for path in pages():
        text = path.read_text(encoding="utf-8")
        assert not [link for link in page(path).loaded if "mathjax" in link.lower()]
        assert ":math:" not in text
        assert ":class:" not in text


def test_every_public_name_has_its_entry():
    told = {name for path in pages() for name in page(path).ids}
    modules = (fourrates, fourrates.io, fourrates.streams)
    names = {(module.__name__, name): getattr(module, name) for module in modules for name in module.__all__}
    ours = {f"{module}.{name}" for (module, name), value in names.items() if not isinstance(value, ModuleType)}
    ours -= {"fourrates.io.BAD", "fourrates.io.Bad"}  # the words that `read` takes, told there
    assert ours - told == set()
