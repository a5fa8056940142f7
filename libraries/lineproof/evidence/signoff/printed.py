"""The sheet as PDF/A-3b, by WeasyPrint. It carries the manifest and the user's files along."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from ...errors import TestbedError
from ...files import read_file
from ...system.installed import remedy
from ..drawing import matplotlib_style
from ..run_files import MANIFEST_FILE
from .html_parts import FONTS
from .sheet import Sheet

_NEEDS = "the PDF needs the package weasyprint: {remedy}; or leave the PDF out: --html-only"
_PANGO = "the PDF needs the library Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0"


def require_weasyprint() -> Any:
    """The package. Raises TestbedError with the way out where it, or its library, is missing."""
    try:
        return importlib.import_module("weasyprint")
    except ImportError:
        raise TestbedError(_NEEDS.format(remedy=remedy("signoff"))) from None
    except OSError:  # it loads the library when it is imported
        raise TestbedError(f"{_PANGO}; or leave the PDF out: --html-only") from None


def pdf_sheet(page: str, sheet: Sheet) -> bytes:
    """*page*, that of *sheet*, as PDF/A-3b. Nothing is fetched: not from a network, and no file but the fonts."""
    weasyprint = require_weasyprint()
    from weasyprint.text.fonts import FontConfiguration

    fonts = FontConfiguration()
    faces = [
        f'@font-face {{ font-family: "{family}"; font-weight: {weight}; font-style: {style};'
        f" src: url({path.as_uri()}); }}"
        for (family, weight, style), file in FONTS.items()
        if (path := _font_folder() / file).is_file()
    ]
    own = weasyprint.CSS(string="\n".join(faces), font_config=fonts, url_fetcher=_fetcher(weasyprint, "file"))
    manifest = sheet.run.path / MANIFEST_FILE
    attached = [
        weasyprint.Attachment(string=read_file(path), name=path.name, relationship=relationship)
        for path, relationship in (
            *([(manifest, "Source")] if sheet.manifest else []),
            *((path, "Supplement") for path in sheet.attached),
        )
    ]
    document = weasyprint.HTML(string=page, url_fetcher=_fetcher(weasyprint, "data"))
    made: bytes = document.write_pdf(
        stylesheets=[own],
        font_config=fonts,
        attachments=attached,
        pdf_variant="pdf/a-3b",
        pdf_tags=True,
        finisher=_plain_metadata,
    )
    return made


def _plain_metadata(_: Any, pdf: Any) -> None:
    """Leave the metadata uncompressed: for validators that ask it of every PDF/A, and programs that know no PDF."""
    for item in pdf.objects:
        if getattr(item, "extra", {}).get("Type") == "/Metadata":
            item.compress = False


def _font_folder() -> Path:
    with matplotlib_style({}):
        import matplotlib

        return Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def _fetcher(weasyprint: Any, protocol: str) -> Any:
    """Fetches what has this *protocol*; another one ends the work."""
    return weasyprint.urls.URLFetcher(allowed_protocols=(protocol,), allow_redirects=False, fail_on_errors=True)
