"""A picture that is drawn at twice its size and then reduced, so that its edges are smooth."""

import io
from typing import Literal

from PIL import Image, ImageDraw, ImageFont

Colour = str | tuple[int, int, int]
Box = tuple[float, float, float, float]
Anchor = Literal["lm", "mm", "rm", "ma", "ms", "lt", "ls"]
_SCALE = 2
_COLOURS = 64  # of the palette that the picture is stored with


class Canvas:
    """Coordinates are pixels of the finished picture, from its top left corner."""

    def __init__(self, width: int, height: int, background: Colour = "white") -> None:
        self.width, self.height = width, height
        self._image = Image.new("RGB", (width * _SCALE, height * _SCALE), background)
        self._draw = ImageDraw.Draw(self._image)

    def line(self, points: list[tuple[float, float]], colour: Colour, width: float = 1) -> None:
        self._draw.line(self._scaled(points), fill=colour, width=round(width * _SCALE), joint="curve")

    def box(
        self, box: Box, *, fill: Colour | None = None, outline: Colour | None = None, radius: float = 0
    ) -> None:
        scaled = tuple(value * _SCALE for value in box)
        width = _SCALE if outline is not None else 0
        self._draw.rounded_rectangle(scaled, radius * _SCALE, fill=fill, outline=outline, width=width)

    def ellipse(self, box: Box, *, fill: Colour | None = None, outline: Colour | None = None) -> None:
        scaled = tuple(value * _SCALE for value in box)
        self._draw.ellipse(scaled, fill=fill, outline=outline, width=_SCALE)

    def polygon(self, points: list[tuple[float, float]], fill: Colour) -> None:
        self._draw.polygon(self._scaled(points), fill=fill)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        *,
        size: int = 13,
        colour: Colour = "#222",
        anchor: Anchor = "lm",
    ) -> None:
        """``anchor`` says which point of the text stands at ``at``, in Pillow's letters."""
        font = ImageFont.load_default(size * _SCALE)
        self._draw.text((at[0] * _SCALE, at[1] * _SCALE), text, fill=colour, font=font, anchor=anchor)

    def png(self) -> bytes:
        small = self._image.resize((self.width, self.height), Image.Resampling.LANCZOS)
        out = io.BytesIO()
        small.quantize(_COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        return out.getvalue()

    def _scaled(self, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x * _SCALE, y * _SCALE) for x, y in points]
