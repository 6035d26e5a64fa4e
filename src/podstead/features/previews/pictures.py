"""Makes thumbnails. Only this module uses the library that decodes pictures.

It runs in a process of its own (``rendering.py``), because picture decoders are the most frequent
source of memory corruption.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
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
    """A small WebP of a picture: its first frame, upright, and of its metadata only when it
    was taken."""
    Image.MAX_IMAGE_PIXELS = MAX_PICTURE_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
                # A JPEG is decoded at a fraction of its size; the other formats ignore it.
                picture.draft("RGB", (THUMBNAIL_PIXELS * 2, THUMBNAIL_PIXELS * 2))
                picture.seek(0)
                exif = _when_taken(picture)
                upright = ImageOps.exif_transpose(picture)
                has_alpha = upright.has_transparency_data
                small = upright.convert("RGBA" if has_alpha else "RGB")
        except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError) as error:
            raise NoThumbnail(type(error).__name__) from error
    small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    small.save(written, "WEBP", quality=_QUALITY, method=4, exif=exif)
    return written.getvalue()


def _when_taken(picture: Image.Image) -> bytes:
    """Metadata with the time at which a picture was taken; empty if it does not say."""
    try:
        taken = picture.getexif().get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.DateTimeOriginal)
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, struct.error):
        return b""  # the picture is shown all the same
    if not isinstance(taken, str) or not _DATE.fullmatch(taken):
        return b""
    exif = Image.Exif()
    exif[ExifTags.Base.DateTime] = taken
    return exif.tobytes()
