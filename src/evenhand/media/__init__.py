"""One module for each medium: each reads a `Result`, and none reads a record.

`terminal` (and `describe`), `document` (JSON), `page` (HTML, also in notebooks), `card` (Markdown),
`frames`, `plots`; `save` chooses by the ending of a file. rich, matplotlib and pandas are imported
where they are used.
"""

from evenhand.media.card import card
from evenhand.media.document import document
from evenhand.media.files import ENDINGS, require_writers, save
from evenhand.media.frames import frame
from evenhand.media.page import fragment, page
from evenhand.media.plots import draw, figure
from evenhand.media.terminal import lines, text
from evenhand.media.told import Told

__all__ = [
    "ENDINGS",
    "Told",
    "card",
    "document",
    "draw",
    "figure",
    "fragment",
    "frame",
    "lines",
    "page",
    "require_writers",
    "save",
    "text",
]
