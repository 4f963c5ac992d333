"""Changes the sources of pages while Sphinx reads them; they stay plain Markdown, which code hosts and the tests read.

The Python blocks of the pages that `executed_pages` lists become code cells of a notebook, so that the site shows what
they print. Each `<picture>` element becomes two images, one of which the site's theme shows: a browser alone would go
by the system's setting, not by the switch on the page.
"""

import re

HEADER = """\
---
file_format: mystnb
kernelspec:
  name: python3
---
"""
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)
TWO_IMAGES = r"![\g<alt>](\g<light>){.only-light}\n![\g<alt>](\g<dark>){.only-dark}"


def change(app, page, source):
    """Replaces the blocks and the pictures of a page."""
    if page in app.config.executed_pages:
        source[0] = HEADER + source[0].replace("```python\n", "```{code-cell} python\n")
    source[0] = PICTURE.sub(TWO_IMAGES, source[0])


def setup(app):
    """Registers the setting and the step."""
    app.add_config_value("executed_pages", [], "env")
    app.connect("source-read", change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
