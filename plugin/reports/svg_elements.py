"""The elements of a static picture (SVG)."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

WIDTH = 1000
TEXT, SMALL = 12, 11  # sizes of letters
PALETTE = Path(__file__).with_name("assets") / "page.css"
UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # what XML may not hold


@cache
def _palettes() -> Sequence[Mapping[str, str]]:
    """The page's colours on a light ground, and on a dark one."""
    light, _, rest = PALETTE.read_text(encoding="utf-8").partition("@media")
    return [dict(re.findall(r"--([\w-]+): ([^;}]+)", part)) for part in (light, rest.partition("}")[0])]


def _colour(name: str) -> str:
    return _palettes()[0].get(name, "#57606a")


def in_the_dark(svg: str) -> str:
    """The same picture, in colours for a dark ground where its viewer asks for these and knows style sheets."""
    light, dark = _palettes()
    rules = (
        f'[{attribute}="{colour}"]{{{attribute}:{dark[name]}}}'
        for name, colour in light.items()
        for attribute in ("fill", "stroke")
        if f'{attribute}="{colour}"' in svg
    )
    head, end, rest = svg.partition(">")
    return f"{head}{end}<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>{rest}"


def room_for(text: str, size: float = TEXT) -> float:
    """About how wide a text is, in units; rather more, as the reader's font is not known."""
    return size * sum(1.0 if ord(c) > 0x2E7F else 0.61 for c in text)


def shortened(text: str, room: float, size: float = TEXT) -> str:
    """The text, cut off where it would take more room."""
    while room_for(text, size) > room and len(text) > 1:
        text = text[:-2].rstrip() + "…"
    return text


def _told(text: str) -> str:
    return escape(UNFIT.sub("�", text))


def _element(tag: str, inner: str = "", **attributes: str | float | None) -> str:
    """An element of attributes that have a value; ``inner`` is SVG."""
    told = (
        f' {name.replace("_", "-")}="{round(value, 1) if isinstance(value, float) else _told(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{''.join(told)}>{inner}</{tag}>"


def text(
    x: float, y: float, words: str, *, colour: str = "ink", size: int = TEXT, anchor: str = "start", halo: bool = False
) -> str:
    """Words whose line stands at this height; with a ``halo`` they can be read over lines."""
    around: dict[str, str | float] = (
        {"stroke": _colour("paper"), "stroke_width": 3, "paint_order": "stroke"} if halo else {}
    )
    return _element("text", _told(words), x=x, y=y, font_size=size, fill=_colour(colour), text_anchor=anchor, **around)


def note(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Words beside a drawing: small and quiet."""
    return text(x, y, words, colour="quiet", size=SMALL, anchor=anchor)


def rect(x: float, y: float, wide: float, tall: float, colour: str) -> str:
    """A filled rectangle."""
    return _element("rect", x=x, y=y, width=wide, height=tall, fill=_colour(colour))


def dot(x: float, y: float, radius: float, colour: str) -> str:
    """A filled circle."""
    return _element("circle", cx=x, cy=y, r=radius, fill=_colour(colour))


def path(steps: str, colour: str, width: float = 1, dash: Sequence[int] = ()) -> str:
    """A line of steps as SVG writes them."""
    dashes = " ".join(map(str, dash)) or None
    return _element("path", d=steps, fill="none", stroke=_colour(colour), stroke_width=width, stroke_dasharray=dashes)


def stroke(
    x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: Sequence[int] = ()
) -> str:
    """A straight line."""
    return path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", colour, width, dash)


def picture(title: str, height: float, parts: Sequence[str]) -> str:
    """A whole picture of these parts, on the page's light ground."""
    tall, ground = int(height), rect(0, 0, WIDTH, height, "paper")
    return _element(
        "svg", "".join([_element("title", _told(title)), ground, *parts]), xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {tall}", width=WIDTH, height=tall, role="img", aria_label=title,
        font_family="system-ui, Verdana, DejaVu Sans, sans-serif",
    )  # fmt: skip
