"""Pages that load nothing and run only their own script, rendered by one pass of Jinja2 with everything escaped.

Template values are always text in the page. Data for a script is JSON in which no character means anything to HTML. The
Content-Security-Policy names the script and the style by their hashes, so nothing injected can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

import fourrates
from fourrates.escaping import printable


def render(package: str, name: str, *, style: str, scripts: Sequence[str] = (), **values: Any) -> str:
    r"""Render the template of this name in this package; `values` are text, numbers and containers of these.

    The style and the scripts are ours; the template writes them as ``{{ style }}``, alone in their elements.

    Examples
    --------
    >>> from fourrates.report.template import environment
    >>> environment().from_string("{{ name }}, {{ {'name': name} | tojson }}").render(name="</script><b>")
    '&lt;/script&gt;&lt;b&gt;, {"name":"\\u003c/script\\u003e\\u003cb\\u003e"}'
    """
    template = environment().from_string((files(package) / name).read_text(encoding="utf-8"))
    return template.render(
        **values,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
        version=fourrates.__version__,
    )


def environment() -> jinja2.Environment:
    """Our Jinja2 settings, under which everything is escaped and a missing name is an error."""
    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
    }  # ASCII, so U+2028 is escaped too
    made.filters["whole"] = "{:,}".format
    made.filters["rate"] = "{:.3f}".format
    made.filters["printable"] = printable
    return made


def policy(style: str, scripts: Sequence[str]) -> str:
    """A Content-Security-Policy that allows this style, these scripts, images in the page, and nothing else."""
    sources = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": _hash(style),
        "script-src": " ".join(map(_hash, scripts)) or "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {source}" for name, source in sources.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
