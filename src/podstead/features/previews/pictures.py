"""Makes thumbnails. Only this module uses the library that decodes pictures.

It runs in a process of its own (``rendering.py``), because picture decoders are the most frequent
source of memory corruption.
"""

import io
import re
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from PIL import ExifTags, Image, ImageOps

THUMBNAIL_PIXELS: Final = 320
"""The longer side of a thumbnail: twice what a tile shows, for screens of double density."""
MAX_PICTURE_PIXELS: Final = 60_000_000
"""A larger picture has no thumbnail: decoding it takes several hundred megabytes."""

FORMATS: Final = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
_QUALITY: Final = 78
_DATE: Final = re.compile(r"[12]\d{3}:\d\d:\d\d \d\d:\d\d:\d\d", re.ASCII)


class NoThumbnail(Exception):
    """The picture is damaged, of another format, or too large."""


def thumbnail(content: bytes) -> bytes:
    """A small WebP of a picture: its first frame, upright, without metadata."""
    with _opened(content) as picture:
        # A JPEG is decoded at a fraction of its size; the other formats ignore it.
        picture.draft("RGB", (THUMBNAIL_PIXELS * 2, THUMBNAIL_PIXELS * 2))
        picture.seek(0)
        upright = ImageOps.exif_transpose(picture)
        has_alpha = upright.has_transparency_data
        small = upright.convert("RGBA" if has_alpha else "RGB")
    small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    small.save(written, "WEBP", quality=_QUALITY, method=4)
    return written.getvalue()


def square(content: bytes, pixels: str) -> bytes:
    """The middle of a picture as a square WebP with sides of at most so many pixels: upright,
    opaque, without metadata, which may say where the person lives."""
    with _opened(content) as picture:
        picture.draft("RGB", (int(pixels) * 2, int(pixels) * 2))
        picture.seek(0)
        upright = ImageOps.exif_transpose(picture).convert("RGBA")
    side = min(int(pixels), *upright.size)
    # Faces are above the middle of portraits more often than below.
    middle = ImageOps.fit(upright, (side, side), Image.Resampling.LANCZOS, centering=(0.5, 0.4))
    white = Image.new("RGBA", middle.size, "white")
    written = io.BytesIO()
    Image.alpha_composite(white, middle).convert("RGB").save(
        written, "WEBP", quality=_QUALITY, method=4
    )
    return written.getvalue()


def when_taken(content: bytes) -> bytes:
    """When a picture was taken, such as ``2019:07:04 12:00:00``; empty if it does not say."""
    with _opened(content) as picture:
        try:
            exif = picture.getexif().get_ifd(ExifTags.IFD.Exif)
        except (TypeError, KeyError, struct.error):
            return b""  # damaged
        taken = exif.get(ExifTags.Base.DateTimeOriginal)
    return taken.encode() if isinstance(taken, str) and _DATE.fullmatch(taken) else b""


@contextmanager
def _opened(content: bytes) -> Iterator[Image.Image]:
    """A picture that is opened and not decoded yet; NoThumbnail for what goes wrong with it."""
    Image.MAX_IMAGE_PIXELS = MAX_PICTURE_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
                yield picture
        except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError) as error:
            raise NoThumbnail(type(error).__name__) from error
