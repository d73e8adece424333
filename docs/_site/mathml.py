"""Formulas as MathML, which browsers show by themselves: no script, no font, no network."""

import latex2mathml.converter
from docutils import nodes


def inline(writer, node):
    """A formula in a line."""
    writer.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """A formula by itself."""
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
