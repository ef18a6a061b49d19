"""Only the page's own files are served, and its policy allows its own scripts only."""

import base64
import hashlib
from pathlib import Path

import pytest

from services.board.web.page_files import PageFiles
from shared.errors import MusterError
from tests.fakes.pages import write_page

PAGE = Path(__file__).parents[4] / "services" / "board" / "page"


def test_links_hidden_files_and_unknown_kinds_are_left_out(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page")
    (tmp_path / "secret.js").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.js").write_text("secret")
    (page / "link.js").symlink_to(tmp_path / "secret.js")
    (page / "linked").symlink_to(tmp_path / "outside")
    (page / ".hidden.js").write_text("secret")
    (page / ".git").mkdir()
    (page / ".git" / "x.js").write_text("secret")
    (page / "program.exe").write_text("secret")
    assert sorted(PageFiles(page).files) == [
        *("/", "/page/app.js", "/page/icon.svg", "/page/index.html", "/page/style.css"),
        *("/page/vendor/LICENSE", "/page/vendor/font.woff2"),
    ]


def test_what_was_read_at_the_start_is_served(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page")
    files = PageFiles(page)
    (page / "app.js").write_text("changed")
    assert files.files["/page/app.js"].content == b"export {}\n"


def test_a_page_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(MusterError, match=r"index\.html is missing"):
        PageFiles(tmp_path)


@pytest.mark.parametrize(
    ("page", "hashed"),
    [
        ('<script type="importmap">{"imports": {}}</script>', ['{"imports": {}}']),
        ("<SCRIPT nonce=x type=importmap>\n{}\n</SCRIPT>", ["\n{}\n"]),
        ("<script>alert(1)</script><script type=module>x</script>", []),
        ('<script type="module" src="/page/app.js"></script>', []),
    ],
)
def test_import_maps_are_the_only_inline_scripts(tmp_path: Path, page: str, hashed: list[str]) -> None:
    (tmp_path / "index.html").write_text(page)
    wanted = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in hashed]
    headers = dict(PageFiles(tmp_path).security_headers())
    scripts = " ".join(["'self'", *(f"'sha256-{each}'" for each in wanted)])
    assert f"; script-src {scripts}; " in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


def test_the_real_page_is_complete() -> None:
    files = PageFiles(PAGE)
    assert {"/page/app.js", "/page/style.css", "/page/vendor/preact.js"} <= files.files.keys()
    assert len(files.script_hashes()) == 1
