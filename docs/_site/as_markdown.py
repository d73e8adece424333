"""Each page also as Markdown for machines, beside its HTML, and all of them listed in llms.txt."""

import re
from pathlib import Path

COG = re.compile(r"^<!-- \[\[\[.*?\]\]\] -->\n", re.MULTILINE)  # around generated figures
SUMMARY = "> Find out when your classifier breaks, even while accuracy looks fine."


def in_order(environment, name):
    """A page and those below it, in the order of the sidebar."""
    yield name
    for below in environment.toctree_includes.get(name, []):
        yield from in_order(environment, below)


def write(app, error):
    """Write them into the finished site."""
    if error is not None or app.builder.format != "html":
        return
    site, links = Path(app.outdir), []
    for name in in_order(app.env, app.config.root_doc):
        text = Path(app.env.doc2path(name)).read_text(encoding="utf-8")
        (site / f"{name}.md").write_text(COG.sub("", text), encoding="utf-8")
        end = "html" if name.startswith("api/") else "md"  # the reference is made from docstrings
        links.append(f"- [{app.env.titles[name].astext()}]({name}.{end})\n")
    (site / "llms.txt").write_text(f"# {app.config.project}\n\n{SUMMARY}\n\n{''.join(links)}", encoding="utf-8")


def setup(app):
    """Tell Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
