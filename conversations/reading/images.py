"""Pictures: turned upright, made small enough, packed anew without what the camera noted."""

from __future__ import annotations

import warnings
from contextlib import suppress
from io import BytesIO

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from conversations.reading import child
from conversations.reading.constants import (
    IMAGE_BYTES_MAX,
    IMAGE_EDGE_PX,
    IMAGE_PIXELS_MAX,
    JPEG_QUALITY,
    PACKED_QUALITY,
)
from conversations.reading.types import Reading, Unreadable

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
PLAIN_MODES = {"L", "LA", "RGB", "RGBA"}


def read(content: bytes) -> Reading:
    """The picture as it is kept; of a moving one the first frame."""
    warnings.simplefilter("ignore")
    Image.MAX_IMAGE_PIXELS = None  # our own limit is lower, and says what to do
    try:
        with Image.open(BytesIO(content), formats=tuple(FORMATS)) as opened:
            kind = str(opened.format)
            if opened.width * opened.height > IMAGE_PIXELS_MAX:
                raise Unreadable(
                    f"The picture has more than {IMAGE_PIXELS_MAX // 1_000_000} million pixels."
                    " Send a smaller one."
                )
            opened.draft("RGB", (2 * IMAGE_EDGE_PX, 2 * IMAGE_EDGE_PX))  # JPEG: decode less of it
            picture = _plain(ImageOps.exif_transpose(opened))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise Unreadable(child.BROKEN) from error
    picture.thumbnail((IMAGE_EDGE_PX, IMAGE_EDGE_PX), Image.Resampling.LANCZOS)
    packed, kind = _packed(picture, kind)
    return Reading(
        content=packed, media_type=FORMATS[kind], width=picture.width, height=picture.height
    )


def _plain(picture: Image.Image) -> Image.Image:
    """Its pixels alone, in sRGB: no profile, no position, no thumbnail of before the crop."""
    profile = picture.info.get("icc_profile")
    has_alpha = "transparency" in picture.info or picture.mode in ("PA", "La", "RGBa")
    if picture.mode not in PLAIN_MODES and not (profile and picture.mode == "CMYK"):
        picture = picture.convert("RGBA" if has_alpha else "RGB")
    if profile:
        mode = "RGB" if picture.mode == "CMYK" else picture.mode
        with suppress(ImageCms.PyCMSError, OSError):
            picture = ImageCms.profileToProfile(  # type: ignore[assignment]
                picture,
                ImageCms.ImageCmsProfile(BytesIO(profile)),
                ImageCms.createProfile("sRGB"),
                outputMode=mode,
            )
    if picture.mode not in PLAIN_MODES:
        picture = picture.convert("RGB")
    plain = Image.new(picture.mode, picture.size)
    plain.paste(picture)
    return plain


def _packed(picture: Image.Image, kind: str) -> tuple[bytes, str]:
    """Bytes and format: its own, unless that is too big."""
    out = BytesIO()
    if kind == "JPEG":
        picture = _opaque(picture)
    if kind == "PNG":
        picture.save(out, "PNG", optimize=True)
    elif kind == "GIF":
        picture.save(out, "GIF")
    else:
        picture.save(out, kind, quality=JPEG_QUALITY)
    if out.tell() > IMAGE_BYTES_MAX:
        out, kind = BytesIO(), "JPEG"
        _opaque(picture).save(out, kind, quality=PACKED_QUALITY, optimize=True)
    return out.getvalue(), kind


def _opaque(picture: Image.Image) -> Image.Image:
    if picture.mode not in ("LA", "RGBA"):
        return picture
    paper = Image.new("RGB", picture.size, "white")
    paper.paste(picture.convert("RGBA"), mask=picture.getchannel("A"))
    return paper


if __name__ == "__main__":
    child.serve(read)
