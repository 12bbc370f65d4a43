import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.ui.conftest import engine_figures

from pagein.errors import BadSetting
from pagein.model.bill import Bill, Detail
from pagein.ui.report import EMBEDDED, largest, page, write_report
from pagein.ui.share_picture import share_picture

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028'\"&amp;<!--"


class Outline(HTMLParser):
    """The elements of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def facts(text: str) -> dict[str, object]:
    found = re.search(r"<script type='application/json' id='facts'>(.*?)</script>", text, re.DOTALL)
    assert found
    loaded: dict[str, object] = json.loads(found[1])
    return loaded


def hostile(bill: Bill, detail: Detail) -> tuple[Bill, Detail]:
    bill["skipped"] = [{"file": HOSTILE, "reason": HOSTILE}]
    bill["prices"] = HOSTILE
    bill["groups"] = {HOSTILE: bill["groups"]["beta"], "other": bill["groups"]["beta"]}
    bill["prediction"] = {HOSTILE: bill["prediction"]["beta"]}
    bill["per_session"][0] |= {
        "id": HOSTILE,
        "file": HOSTILE,
        "source": HOSTILE,
        "agent": HOSTILE,
        "flags": {HOSTILE: HOSTILE},
    }
    detail["title"] = detail["id"] = detail["file"] = HOSTILE
    detail["residents"][0]["label"] = HOSTILE
    detail["epochs"][0]["reason"] = HOSTILE
    if detail["why"] is not None:
        detail["why"] |= {"id": HOSTILE, "idle": HOSTILE}
        detail["why"]["decisions"][0]["reason"] = HOSTILE
    return bill, detail


def test_what_serve_does_by_default_comes_first(bill: Bill, detail: Detail) -> None:
    """Keep-alive requests have to be asked for, so their figures stand behind, under their name."""
    bill["policies"]["pagein-quiet"] = engine_figures(3_000_000.0, quotes_lost=2, faults=5)
    bill["policies"]["pagein"] = engine_figures(2_000_000.0, keep_alives=3)
    for one in bill["per_session"]:
        one["policies"]["pagein-quiet"] = engine_figures(3_000_000.0)
    said = page(bill, [detail])
    (tiles,) = re.findall(r"<ul class='tiles'>(.*?)</ul>", said)
    labels = re.findall(r"<b>(.*?)</b><span>(.*?)</span>", tiles)
    names = [label for _, label in labels]
    quiet, kept = (
        next(at for at, name in enumerate(names) if find in name) for find in ("pagein-quiet", "with --keep-alive")
    )
    assert quiet == 1
    assert kept > max(names.index("against the baseline"), names.index("edit quotes lost from sight"))
    assert ("2 of 120", "edit quotes lost from sight") in labels
    assert names.count("against the baseline") == 1
    assert "<tr class='engine'><th scope='row'>pagein-quiet" in said
    (head,) = re.findall(r"<th scope='col'>session</th>(.*?)</tr>", said)
    assert head.index("pagein-quiet") < head.index(">pagein<")
    assert facts(said)["by_default"] == "pagein-quiet"


def test_where_only_one_was_replayed_it_has_the_tile(bill: Bill, detail: Detail) -> None:
    bill["policies"].pop("pagein-quiet", None)
    (tiles,) = re.findall(r"<ul class='tiles'>(.*?)</ul>", page(bill, [detail]))
    assert "against the baseline" in tiles
    assert "keep-alive" not in tiles


def test_hostile_session_text_stays_text(bill: Bill, detail: Detail) -> None:
    plain_tags = [tag for tag, _ in Outline(page(bill, [detail])).tags]
    text = page(*_listed(hostile(bill, detail)))
    outline = Outline(text)
    assert len(outline.named("script")) == plain_tags.count("script") == 2
    assert not outline.named("img")
    assert "<script>alert" not in text
    assert not any(name.startswith("on") for _, attributes in outline.tags for name in attributes)


def _listed(pair: tuple[Bill, Detail]) -> tuple[Bill, list[Detail]]:
    return pair[0], [pair[1]]


def test_hostile_text_comes_back_whole_from_the_embedded_data(bill: Bill, detail: Detail) -> None:
    sessions = facts(page(*_listed(hostile(bill, detail))))["sessions"]
    assert isinstance(sessions, list)
    assert sessions[0]["title"] == HOSTILE


def test_nothing_is_loaded_from_anywhere(bill: Bill, detail: Detail) -> None:
    text = page(bill, [detail])
    outline = Outline(text)
    assert not [name for _, attributes in outline.tags for name in attributes if name in {"src", "srcset", "action"}]
    assert not outline.named("link")
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text


def test_the_security_policy_names_the_very_script_and_style(bill: Bill, detail: Detail) -> None:
    import base64
    import hashlib

    text = page(bill, [detail])
    for element in ("style", "script"):
        content = re.search(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert content
        name = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{name}'" in text


def test_no_element_has_a_style_of_its_own_that_the_policy_would_block(bill: Bill, detail: Detail) -> None:
    assert not [tag for tag, attributes in Outline(page(bill, [detail])).tags if "style" in attributes]


def test_every_id_that_the_script_asks_for_exists(bill: Bill, detail: Detail) -> None:
    text = page(bill, [detail])
    ids = {attributes["id"] for _, attributes in Outline(text).tags if "id" in attributes}
    asked = set(re.findall(r'\$\("([a-z-]+\d?)"\)', text)) - {"composition-name", "composition", "cache"}
    assert asked
    assert asked <= ids
    assert {f"{chart}{index}" for chart in ("composition", "cache") for index in (0, 1)} <= ids


def test_the_pictures_are_of_the_dearest_sessions_and_the_page_says_so(
    bills: Callable[[int], Bill], details: Callable[[str, str], Detail]
) -> None:
    many = [details(f"session-{number}", "x") for number in range(EMBEDDED + 5)]
    for number, each in enumerate(many):
        each["traces"]["append"]["cost"] = [float(number)]
    kept = largest(many, "append")
    assert [each["id"] for each in kept] == [f"session-{number}" for number in range(EMBEDDED + 4, 4, -1)]
    text = page(bills(EMBEDDED + 5), many)
    assert f"The pictures are those of the {EMBEDDED} dearest of {EMBEDDED + 5} sessions." in text


def test_sessions_that_cost_more_are_listed_by_their_first_words_and_place(
    bills: Callable[[int], Bill], detail: Detail
) -> None:
    bill = bills(3)
    assert "makes dearer" not in page(bill, [])
    one = bill["per_session"][1]
    one["policies"]["pagein"] |= {"cost": 9e6, "usd": 27.0}
    one["began"] = 1.8e9
    (table,) = re.findall(r"makes dearer</h2>(.*?)</table>", page(bill, [detail]), re.DOTALL)
    assert "Mend the parser, part 1<small>project-1 &middot; 2027-01-1" in table
    assert "part 2" not in table


def test_the_picture_to_share_has_figures_and_no_word_of_a_session(bill: Bill, detail: Detail) -> None:
    drawn = share_picture(hostile(bill, detail)[0])
    root = ET.fromstring(drawn)  # noqa: S314 - of our own making
    said = " ".join(text for one in root.iter() if (text := (one.text or "").strip()))
    assert said.startswith(
        "pagein 1 recorded agent session would have cost 12.7 % less with pagein without pagein $10.26"
    )
    assert "agent compacts itself $9.75  -5.0 %" in said
    assert HOSTILE not in said
    assert "parser" not in said
    assert drawn.strip() in page(bill, [detail])
    del bill["policies"]["pagein"]
    assert share_picture(bill) == ""


def test_a_session_row_links_to_its_pictures(bill: Bill, detail: Detail) -> None:
    assert {"href": "#session-1"} in Outline(page(bill, [detail])).named("a")


def test_a_page_without_details_shows_the_tables(bill: Bill) -> None:
    text = page(bill, [])
    assert "What each policy costs" in text
    assert "What the prompt consists of" not in Outline(text).texts


def test_a_page_about_few_policies_is_made(bill: Bill, detail: Detail) -> None:
    del bill["policies"]["pagein"], bill["policies"]["optimum"]
    assert "cost, pagein" not in page(bill, [detail])


def test_a_report_is_written_whole_and_for_its_owner_only(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    target = tmp_path / "new" / "report.html"
    write_report(target, bill, [detail])
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_a_report_that_fails_half_way_leaves_the_old_one(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    detail["times"][0] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        write_report(target, bill, [detail])
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_cannot_be_written_is_named(bill: Bill, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadSetting, match=r"report\.html: cannot write"):
        write_report(tmp_path / "file" / "report.html", bill, [])


def test_what_is_no_file_is_written_to_and_not_replaced(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.read_text, encoding="utf-8")
        write_report(pipe, bill, [detail])
        assert written.result().endswith("</html>\n")
    assert pipe.is_fifo()


def test_a_link_stays_a_link(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    target = tmp_path / "reports" / "today.html"
    link = tmp_path / "latest.html"
    link.symlink_to(target)
    write_report(link, bill, [detail])
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").endswith("</html>\n")


def test_a_name_of_any_length_stays_short_on_the_page(bill: Bill, detail: Detail) -> None:
    bill["groups"]["s" * 5000] = bill["groups"]["beta"]
    bill["prediction"]["s" * 5000] = bill["prediction"]["beta"]
    bill["per_session"][0] |= {"id": "i" * 5000, "source": "s" * 5000}
    assert not re.search(r"([si])\1{100}", page(bill, [detail]).replace(json.dumps(detail["id"]), ""))


def test_names_without_an_encoding_do_not_stop_the_page(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    bill["skipped"] = [{"file": "bad\udcff.jsonl", "reason": "binary"}]
    detail["title"] = "lone \ud800 surrogate"
    write_report(tmp_path / "report.html", bill, [detail])
    assert (tmp_path / "report.html").stat().st_size > 50_000


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_of_the_page_is_valid(bill: Bill, detail: Detail, tmp_path: Path) -> None:
    script = re.search(r"<script>(.*?)</script>", page(bill, [detail]), re.DOTALL)
    assert script
    (tmp_path / "page.js").write_text(script[1], encoding="utf-8")
    done = subprocess.run(["node", "--check", tmp_path / "page.js"], capture_output=True, text=True, check=False)  # noqa: S603, S607 - whichever node there is
    assert done.stderr == ""
