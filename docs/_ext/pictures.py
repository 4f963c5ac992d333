"""Pictures for light and dark pages.

Pages hold `<picture>` elements, which code hosts show by their reader's theme. Here each becomes two images, one of
which the site's theme shows: a browser alone would go by the system's setting, not by the switch on the page.
"""

import re

PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)


def two_images(match):
    """Markdown for one picture."""
    alt = match["alt"]
    return f"![{alt}]({match['light']}){{.only-light}}\n![{alt}]({match['dark']}){{.only-dark}}"


def split(app, page, source):
    """Replaces the pictures of a page."""
    source[0] = PICTURE.sub(two_images, source[0])


def setup(app):
    """Registers the step."""
    app.connect("source-read", split)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
