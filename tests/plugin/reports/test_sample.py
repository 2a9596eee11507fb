"""The stored run of a real CockroachDB that the README's pictures are made of."""

import re
from pathlib import Path
from typing import Any

import pytest

from clusters.errors import BadInput
from plugin.reports import allure_html
from tests.docs import pictures
from tests.plugin.conftest import CHECKOUT
from tests.plugin.reports.browser import opened

CLAIMS = 3


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pictures.unpacked(pictures.SAMPLE, tmp_path_factory.mktemp("sample"))


def test_the_sample_is_judged_as_it_was(sample: Path) -> None:
    text = pictures.judge(sample, "-v")
    told = re.findall(r"(?:same verdict as stored|differs: .+|\d checks are new: .+(?:\n  \S.+)*)", text)
    # checks that the run did not have
    younger = {
        True: [
            "errors_undisturbed",
            "client_wait_undisturbed_s",
            "gap_resuming_s",
            "client_wait_resuming_s",
            "failed_resuming",
            "served_after",
        ],
        False: [
            "errors_not_retryable",
            "client_wait_s",
            "failed_disturbed",
            "served_after",
            "client_wait_undisturbed_s",
        ],
    }
    claims = re.findall("claim .*:", text)
    stricter = {True: "differs: limit of resumed_s: was <= 60.0, is <= 30.0", False: "same verdict as stored"}
    for claim, same, newer in zip(claims, told[::2], told[1::2], strict=True):
        assert same == stricter["quorum" in claim]
        assert " ".join(newer.partition(": ")[2].split()) == ", ".join(younger["quorum" in claim])
    assert len(claims) == CLAIMS
    assert "claims: 3 pass" in text
    assert "cockroach v21.1.0-alpha.20210228" in text
    assert "rows 5303 of 5298 to 5307 expected" in " ".join(text.split()), "beside the source's table"


def test_the_documents_show_pictures_that_are_made() -> None:
    pages = ("README.md", "docs/evidence.md")
    shown = {
        name for page in pages for name in re.findall(r"\]\((?:docs/)?(\w+)\.png\)", (CHECKOUT / page).read_text())
    }
    assert shown == {"terminal", "page", "allure"}
    for name in shown:
        assert (CHECKOUT / "docs" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_allure_s_html_in_a_real_browser(chromium: Any, sample: Path, tmp_path: Path) -> None:
    try:
        allure_html.allure()
    except BadInput as missing:
        pytest.skip(f"builds Allure's HTML: {missing}")
    allure_html.build(sample, tmp_path / "report")
    seen = opened(chromium, tmp_path / "report" / "index.html", height=1150)
    pictures.claim_in_allure(seen.page)
    text = seen.page.inner_text("body")
    for told in (
        "survivability: a killed node, inserts 2000 · cockroach v21.1.0-alpha.20210228",
        "Disturb: kill n1",
        "lost: 0 rows, must be == 0 rows – PASS",
        "Source beside measurement: table 5.6",
    ):
        assert told in text
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:", "blob:"))] == []
