"""Code without the empty line that an example needs at its end to be run."""

from docutils import nodes


def trim(app, doctree):
    """Take that line away."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Tell Sphinx."""
    app.connect("doctree-read", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
