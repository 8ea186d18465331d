"""The colours of the pictures, by Grafana's names, on a light page and on a dark one.

A shape says only the name, as its class. What that is, the style sheet in the picture says, and the browser of the
person who looks chooses: a picture inside a page knows which of the two that person prefers.
"""

from collections.abc import Mapping

_LIGHT_AND_DARK: Mapping[str, tuple[str, str]] = {
    "background": ("#f4f5f5", "#111217"),
    "paper": ("#ffffff", "#1b1e23"),
    "frame": ("#dcdee0", "#2d3137"),
    "text": ("#1f2328", "#d8dade"),
    "soft": ("#5a6068", "#9ca0a8"),
    "pale": ("#ffffff", "#ffffff"),
    "black": ("#1f2328", "#16181c"),
    "green": ("#3d9a50", "#4da560"),
    "yellow": ("#e6b422", "#e0b52e"),
    "orange": ("#e08214", "#ee9433"),
    "red": ("#c4302b", "#d9443f"),
    "blue": ("#2a6fb0", "#4f94d8"),
    "purple": ("#8e5ea2", "#a97cc0"),
    "teal": ("#2f9890", "#45b3aa"),
    "brown": ("#a35a1a", "#c07b3c"),
    "pink": ("#cc4a82", "#e06c9f"),
    "olive": ("#8a8c00", "#b0b21c"),
    "super-light-blue": ("#c0d8ff", "#d3e4ff"),
    "light-blue": ("#8ab8ff", "#a5c9ff"),
    "semi-dark-blue": ("#3274d9", "#3f7fdf"),
    "dark-blue": ("#1f4fa0", "#2a5cb0"),
}

# For series that have no colour of their own, in this order.
PALETTE = ("blue", "orange", "teal", "purple", "pink", "olive", "brown", "green", "red", "soft")

_SHAPES = (
    'svg{font-family:Inter,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;font-size:11px}'
    "rect,polygon,text{fill:currentColor}line,polyline{fill:none;stroke:currentColor}"
)


def stylesheet() -> str:
    light = "".join(f".{name}{{color:{one}}}" for name, (one, _) in _LIGHT_AND_DARK.items())
    dark = "".join(f".{name}{{color:{other}}}" for name, (_, other) in _LIGHT_AND_DARK.items())
    return f"<style>{_SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def ink_on(colour: str) -> str:
    """Choose what can be read on a colour."""
    return "black" if colour in {"yellow", "orange"} else "pale"
