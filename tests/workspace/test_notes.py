import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.workspace.frontmatter import BadFrontmatter, parse_frontmatter, scalar
from pagein.workspace.notes import Note, NoteLink, is_note, parse_note


def links(text: str) -> list[str]:
    return [link.target for link in parse_note(text).links]


# --- links ---


@pytest.mark.parametrize(
    ("written", "link"),
    [
        ("[[Other]]", NoteLink("Other", line=1)),
        ("[[ Other note ]]", NoteLink("Other note", line=1)),
        ("[[Other|shown]]", NoteLink("Other", alias="shown", line=1)),
        ("[[Other|a|b]]", NoteLink("Other", alias="a|b", line=1)),
        ("[[Other#Head]]", NoteLink("Other", ("Head",), line=1)),
        ("[[Other#Head#Sub|shown]]", NoteLink("Other", ("Head", "Sub"), alias="shown", line=1)),
        ("[[Other#^b1]]", NoteLink("Other", block="b1", line=1)),
        ("[[#Head]]", NoteLink("", ("Head",), line=1)),
        ("[[#^b1]]", NoteLink("", block="b1", line=1)),
        ("![[pic.png|100]]", NoteLink("pic.png", alias="100", embedded=True, line=1)),
        ("**[[Other]]**", NoteLink("Other", line=1)),
        ("- [ ] [[Other]]", NoteLink("Other", line=1)),
        ("> [!note] [[Other]]", NoteLink("Other", line=1)),
        ("# About [[Other]]", NoteLink("Other", line=1)),
        ("[text](sub/Other%20note.md#Head)", NoteLink("sub/Other note.md", ("Head",), line=1)),
        ("![alt](pic.png)", NoteLink("pic.png", embedded=True, line=1)),
        ("[[01890a5d-ac96-774b-bcce-b302099a8057]]", NoteLink("01890a5d-ac96-774b-bcce-b302099a8057", line=1)),
    ],
)
def test_a_link_is_read_in_all_its_parts(written: str, link: NoteLink) -> None:
    assert parse_note(written).links == (link,)


@pytest.mark.parametrize(
    "text",
    [
        "`[[Other]]`",
        "`` a ` [[Other]] ``",
        "```\n[[Other]]\n```",
        "~~~md\n[[Other]]\n~~~",
        "    [[Other]]",
        "\\[[Other]]",
        "[[]]",
        "[[ ]]",
        "[[#]]",
        "[[Other",
        "[[Ot\nher]]",
        "[ [Other]]",
        "<div>[[Other]]</div>",
        "<!-- [[Other]] -->",
        "[web](https://example.org/[[Other]])",
        "[mail](mailto:a@b.c)",
        "[nowhere]()",
    ],
)
def test_what_is_no_link_is_none(text: str) -> None:
    assert links(text) == []


def test_an_alias_in_a_table_has_its_bar_escaped() -> None:
    note = parse_note("| a | b |\n|---|---|\n| [[Other\\|shown]] | [[Third]] |\n")
    assert note.links == (NoteLink("Other", alias="shown", line=3), NoteLink("Third", line=3))


def test_links_tell_their_lines_in_the_file() -> None:
    text = "---\na: 1\n---\n\nfirst [[One]]\nand `code\nspan` [[Two]]\n\n> [[Three]]\n> [[Four]]\n\n- x\n- [[Five]] [md](Six.md)\n"
    assert [(link.target, link.line) for link in parse_note(text).links] == [
        ("One", 5), ("Two", 7), ("Three", 9), ("Four", 10), ("Five", 13), ("Six.md", 13)
    ]  # fmt: skip


def test_windows_line_ends_and_byte_order_marks_change_nothing() -> None:
    text = "---\ntags: [x]\n---\nsee [[One]]\nand [[Two]] #y\n"
    plain = parse_note(text)
    assert parse_note("\ufeff" + text.replace("\n", "\r\n")) == plain
    assert [link.line for link in plain.links] == [4, 5]


# --- tags ---


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one and #two/three, (#four) #five-x_y!", ["one", "two/three", "four", "five-x_y"]),
        ("#\u00fcber #\u4e2d\u6587 #\U0001f600", ["\u00fcber", "\u4e2d\u6587", "\U0001f600"]),
        ("#One #one #ONE", ["One"]),
        ("#y2026 #2026y #1a", ["y2026", "2026y", "1a"]),
        ("#123 # #/ #- a#b http://x/#frag ##c \\#d", ["-"]),
        ("**#bold** *#it* ~~#gone~~", ["bold", "it", "gone"]),
        ("#tag.", ["tag"]),
        ("`#code`\n\n```\n#code\n```\n", []),
        ("# Heading\n\n## Second #tag\n", ["tag"]),
        ("[#text](x.md)", ["text"]),
    ],
)
def test_tags_are_read_as_people_write_them(text: str, tags: list[str]) -> None:
    assert list(parse_note(text).tags) == tags


@pytest.mark.parametrize(
    ("frontmatter", "tags"),
    [
        ("tags: [a, b/c]", ["a", "b/c"]),
        ("tags:\n  - '#a'\n  - b", ["a", "b"]),
        ("tags: a, b c", ["a", "b", "c"]),
        ("tag: a", ["a"]),
        ("tags: 2026", ["2026"]),
        ("tags:", []),
        ("tags: {a: 1}", []),
    ],
)
def test_tags_may_stand_in_the_frontmatter(frontmatter: str, tags: list[str]) -> None:
    assert list(parse_note(f"---\n{frontmatter}\n---\n").tags) == tags


# --- frontmatter ---


def test_frontmatter_is_data_and_not_text() -> None:
    note = parse_note(
        "---\ntitle: A title\nid: 01ab\naliases: [x, y]\nn: 5\nf: 1.5\nb: true\nno: no\nwhen: 2026-11-21\n---\n# Head\n"
    )
    assert note.frontmatter == {
        "title": "A title", "id": "01ab", "aliases": ["x", "y"], "n": 5, "f": 1.5, "b": True, "no": "no", "when": "2026-11-21"
    }  # fmt: skip
    assert (note.title, note.id, note.aliases, note.problem) == ("A title", "01ab", ("x", "y"), None)


def test_links_in_the_frontmatter_are_links_with_their_place() -> None:
    note = parse_note('---\nup: "[[Home]]"\nsee:\n  - "[[A|b]] and [[C]]"\nx/y: "[[D]]"\n---\ntext [[E]]\n')
    assert [(link.target, link.place, link.line) for link in note.links] == [
        ("Home", "/up", None), ("A", "/see/0", None), ("C", "/see/0", None), ("D", "/x~1y", None), ("E", "", 7)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("---\na: [1\n---\n[[Other]]", "no YAML in line"),
        ("---\n- a\n---\n[[Other]]", "no mapping"),
        ("---\na: &x [1]\nb: *x\n---\n[[Other]]", "aliases are not read"),
        ("---\n? [a]\n: 1\n---\n[[Other]]", "a key that is no text"),
        ("---\na: " + "[" * 400 + "]" * 400 + "\n---\n[[Other]]", "deep"),
        ("---\na: " + "x" * 70_000 + "\n---\n[[Other]]", "has 70003 characters"),
    ],
)
def test_a_note_with_damaged_frontmatter_is_still_a_note(text: str, problem: str) -> None:
    note = parse_note(text)
    assert note.problem is not None
    assert problem in note.problem
    assert note.frontmatter == {}
    assert [link.target for link in note.links] == ["Other"]


def test_frontmatter_that_is_not_closed_is_text() -> None:
    note = parse_note("---\na: 1\n\n[[Other]]")
    assert note.frontmatter == {}
    assert links("---\na: 1\n\n[[Other]]") == ["Other"]


def test_nothing_in_the_frontmatter_runs() -> None:
    assert parse_frontmatter("a: !!python/object/apply:os.system ['true']") == {"a": ["true"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("False", False), ("yes", "yes"), ("off", "off"),
        ("12", 12), ("-3", -3), ("012", 12), ("0o17", 15), ("0x1F", 31), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0),
        ("12:30", "12:30"), ("1_000", "1_000"), (".inf", ".inf"), ("1e999", "1e999"), ("9" * 30, "9" * 30), ("2026-11-21", "2026-11-21"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_quoted_scalars_are_texts() -> None:
    assert parse_frontmatter("a: \"5\"\nb: 'true'\nc: |\n  5\n") == {"a": "5", "b": "true", "c": "5\n"}


@given(st.text(max_size=200))
def test_every_text_is_a_note(text: str) -> None:
    assert isinstance(parse_note(text), Note)
    assert isinstance(parse_note(f"---\n{text}\n---\n{text}"), Note)


@given(st.text(max_size=80))
def test_frontmatter_is_read_or_refused_in_words(text: str) -> None:
    problem = ""
    try:
        read = parse_frontmatter(text)
    except BadFrontmatter as refused:
        read, problem = {}, str(refused)
    assert isinstance(read, dict)
    assert not (read and problem)


# --- the rest ---


def test_blocks_and_titles_are_found() -> None:
    note = parse_note("text\n\n# The *title* of it\n\nsome text ^b1\n\n- item ^b-2\n\n`x ^b3`\n")
    assert note.title == "The *title* of it"
    assert note.blocks == ("b1", "b-2")


def test_a_note_is_told_by_its_name() -> None:
    assert is_note("a/b.md")
    assert is_note("README.MD")
    assert not is_note("a.mdx.py")


@pytest.mark.parametrize(
    "text", ["[" * 30_000, "[[a" * 10_000, "![" * 10_000, "#" * 30_000, "#a" * 10_000, "`" * 20_000, "> " * 5_000]
)
def test_texts_made_to_be_slow_are_read_in_time(text: str) -> None:
    import time

    began = time.process_time()
    parse_note(text)
    once = time.process_time() - began
    began = time.process_time()
    parse_note(text * 3)
    assert time.process_time() - began < 12 * once + 2


def test_a_text_beyond_measure_is_kept_without_being_read() -> None:
    note = parse_note("[[Other]] " * 500_000)
    assert note.links == ()
    assert note.problem is not None
