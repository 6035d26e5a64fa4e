"""Pictures that look like photos of a walk, drawn here, so that they belong to nobody."""

from __future__ import annotations

import io
import math
import random
from dataclasses import dataclass
from typing import Final

from PIL import Image, ImageDraw, ImageFilter, ImageOps

_WIDTH: Final = 960
_HEIGHT: Final = 640
_LAYERS: Final = 4

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Landscape:
    """The colours of a place at some time of the day."""

    above: Colour
    horizon: Colour
    sun: Colour
    far: Colour
    near: Colour
    sea: bool = False


LANDSCAPES: Final[dict[str, Landscape]] = {
    "Autumn above the lake": Landscape(
        (92, 145, 196), (250, 226, 190), (255, 246, 214), (150, 160, 178), (146, 74, 28), sea=True
    ),
    "Before the storm": Landscape(
        (58, 66, 84), (170, 176, 178), (225, 225, 215), (112, 122, 132), (38, 52, 50)
    ),
    "Dunes": Landscape(
        (120, 186, 226), (247, 236, 214), (255, 255, 240), (226, 200, 156), (196, 150, 92)
    ),
    "First snow": Landscape(
        (134, 172, 206), (240, 244, 248), (255, 255, 250), (196, 210, 224), (236, 242, 247)
    ),
    "Harbour at dusk": Landscape(
        (40, 44, 92), (244, 142, 96), (255, 214, 150), (92, 76, 116), (30, 28, 52), sea=True
    ),
    "Meadow in June": Landscape(
        (96, 172, 228), (224, 242, 250), (255, 252, 220), (128, 172, 142), (74, 128, 46)
    ),
    "Morning fog": Landscape(
        (196, 206, 214), (246, 236, 222), (255, 250, 236), (190, 198, 202), (76, 96, 94)
    ),
    "Sunrise": Landscape(
        (86, 108, 176), (255, 190, 128), (255, 240, 190), (176, 124, 140), (66, 44, 72), sea=True
    ),
}


def photo(name: str) -> bytes:
    """A landscape as JPEG, always the same for a name of ``LANDSCAPES``."""
    colours = LANDSCAPES[name]
    chance = random.Random(name)
    picture = _gradient(_WIDTH, _HEIGHT, colours.above, colours.horizon)
    x, y = chance.randint(200, _WIDTH - 200), chance.randint(170, 260)
    _shine(picture, x, y, colours.sun)
    draw = ImageDraw.Draw(picture)
    for layer in range(_LAYERS):
        depth = layer / (_LAYERS - 1)
        base = 300 + round(depth * 210)
        draw.polygon(
            _hills(chance, base, height=110 - 22 * layer), _mixed(colours.far, colours.near, depth)
        )
        if colours.sea and layer == 1:
            water = _gradient(_WIDTH, _HEIGHT - 420, colours.horizon, colours.above)
            picture.paste(water, (0, 420))
            _glitter(picture, chance, x, colours.sun)
    return _jpeg(picture.filter(ImageFilter.GaussianBlur(0.8)))


def portrait(background: Colour, skin: Colour, hair: Colour, clothes: Colour) -> bytes:
    """A person's picture as JPEG."""
    picture = _gradient(512, 512, background, _mixed(background, (255, 255, 255), 0.5))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((146, 92, 366, 350), fill=hair)
    draw.rounded_rectangle((218, 290, 294, 420), 36, fill=_mixed(skin, (60, 30, 20), 0.15))
    draw.ellipse((72, 372, 440, 720), fill=clothes)
    draw.ellipse((176, 128, 336, 344), fill=skin)
    draw.chord((164, 96, 348, 270), 180, 360, fill=hair)
    for x in (222, 290):
        draw.ellipse((x - 8, 226, x + 8, 244), fill=(46, 36, 32))
    draw.arc((220, 240, 292, 306), 25, 155, fill=_mixed(skin, (120, 30, 30), 0.6), width=6)
    return _jpeg(picture.filter(ImageFilter.GaussianBlur(0.8)))


def _gradient(width: int, height: int, above: Colour, below: Colour) -> Image.Image:
    grey = Image.linear_gradient("L").resize((width, height))
    return ImageOps.colorize(grey, above, below)


def _shine(picture: Image.Image, x: int, y: int, colour: Colour) -> None:
    halo = Image.new("L", picture.size)
    draw = ImageDraw.Draw(halo)
    draw.ellipse((x - 120, y - 120, x + 120, y + 120), fill=120)
    halo = halo.filter(ImageFilter.GaussianBlur(60))
    draw = ImageDraw.Draw(halo)
    draw.ellipse((x - 38, y - 38, x + 38, y + 38), fill=255)
    picture.paste(Image.new("RGB", picture.size, colour), mask=halo)


def _glitter(picture: Image.Image, chance: random.Random, x: int, colour: Colour) -> None:
    light = Image.new("L", picture.size)
    draw = ImageDraw.Draw(light)
    for _ in range(140):
        y = chance.randint(424, _HEIGHT)
        width = chance.randint(6, 30)
        middle = x + round(chance.gauss(0, 12 + (y - 420) / 3))
        draw.ellipse((middle - width, y - 1, middle + width, y + 1), fill=110)
    picture.paste(Image.new("RGB", picture.size, colour), mask=light)


def _hills(chance: random.Random, base: int, height: int) -> list[tuple[float, float]]:
    waves = [
        (chance.uniform(0.6, 1) / step, chance.uniform(0.8, 1.3) * step, chance.uniform(0, 6))
        for step in (1, 2, 4, 9, 21)
    ]
    ridge = [
        (
            x,
            base
            - height
            * sum(
                strength * math.sin(x / _WIDTH * 2 * math.pi * speed + start)
                for strength, speed, start in waves
            )
            / 2,
        )
        for x in range(0, _WIDTH + 8, 8)
    ]
    return [(0.0, float(_HEIGHT)), *ridge, (float(_WIDTH), float(_HEIGHT))]


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _jpeg(picture: Image.Image) -> bytes:
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=88)
    return written.getvalue()
