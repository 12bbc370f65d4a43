import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.store.search.pattern_texts import FOLDING, QUIET, patterns, texts

from pagein.policy.recall.pattern_refusals import refusal
from pagein.policy.recall.patterns import (
    _SETTLED,
    NO_NEED,
    Every,
    Gram,
    Need,
    fold_text,
    grams,
    grams_needed,
    literal_grams,
    meets,
)


def all_of(*texts: str) -> str:
    """How a need for these pieces reads."""
    return " ".join(sorted({text[start : start + 3] for text in texts for start in range(len(text) - 2)}))


def any_of(*texts: str) -> str:
    return "{" + " | ".join(sorted(map(all_of, texts))) + "}"


def read(need: Need) -> str:
    if isinstance(need, Gram):
        return need.text
    if isinstance(need, Every):
        return " ".join(sorted(map(read, need.needs)))
    return "{" + " | ".join(sorted(map(read, need.needs))) + "}"


# --- the law ---


@settings(max_examples=800, deadline=None)
@given(pattern=patterns, text=texts, ignore_case=st.booleans())
@example(pattern="(?i)k{3}", text="\u212akK", ignore_case=False)
@example(pattern=r"\Qab\E+", text="abbb", ignore_case=False)
@example(pattern=r"(abab)\Q\E*", text="", ignore_case=False)
@example(pattern="a(?i)b|Kkk", text="KKK", ignore_case=False)
@example(pattern="(?:(?i)aaa)bbb", text="AAAbbb", ignore_case=False)
@example(pattern="a\0b", text="a\0b", ignore_case=False)
@example(pattern="[[:alpha:]]foo", text="xfoo", ignore_case=False)
def test_every_text_with_a_match_meets_the_need(pattern: str, text: str, *, ignore_case: bool) -> None:
    found = re2.compile(pattern.encode(), FOLDING if ignore_case else QUIET).search(text.encode())
    need = grams_needed(pattern, ignore_case=ignore_case)
    assert found is None or meets(need, fold_text(text)), need


@settings(max_examples=400)
@given(literal=texts, around=st.tuples(texts, texts), ignore_case=st.booleans())
def test_every_text_with_a_literal_meets_its_need(literal: str, around: tuple[str, str], *, ignore_case: bool) -> None:
    text = literal.join(around)
    assert meets(literal_grams(literal, ignore_case=ignore_case), fold_text(text))


@given(texts, texts)
def test_folding_a_text_is_folding_its_parts(left: str, right: str) -> None:
    assert fold_text(left + right) == fold_text(left) + fold_text(right)


@given(texts)
def test_a_need_asks_only_for_grams_that_the_text_itself_has(text: str) -> None:
    assert meets(Every(tuple(map(Gram, grams(fold_text(text))))), fold_text(text))


def test_no_character_counts_without_regard_to_case_that_others_match_and_fold_apart() -> None:
    """Over all of Unicode, as the engine at hand knows it."""
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    settled = [character for character in everything if _SETTLED.fullmatch(character)]
    cased = [character for character in settled if character.swapcase() != character]
    assert len(cased) > 300
    both = "".join(cased).replace("\\", "")
    partners = re2.compile(f"[{both}]".encode(), FOLDING).findall(everything.encode())
    reached = b"".join(partners).decode()
    for character in cased:
        own = re2.compile(character.encode(), FOLDING).findall(reached.encode())
        assert {fold_text(other.decode()) for other in own} == {fold_text(character)}, hex(ord(character))
    caseless = "".join(character for character in settled if character not in cased and not character.isascii())
    matched = b"".join(re2.compile(f"[{caseless}]".encode(), FOLDING).findall(everything.encode())).decode()
    assert matched == caseless


# --- what is told ---


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"asyncio\.create", all_of("asyncio.create")),
        (r"class \w+Error\(Ex", all_of("class ", "error(ex")),
        (r"(TODO|FIXME)\b", any_of("fixme", "todo")),
        (r"(TODO|FIXME)x", any_of("fixmex", "todox")),
        (r"colou?r", any_of("color", "colour")),
        (r"(?i)[Tt]odo", all_of("todo")),
        (r"foo+bar", all_of("foo", "obar")),
        (r"(ab){2}", all_of("abab")),
        (r"x(?:abc|def)*y", ""),
        (r"ab|cdef", ""),
        (r"\d{3}-\d{4}", ""),
        (r"[[:alpha:]]foo", all_of("foo")),
        (r"\Qa.b(\Ec", all_of("a.b(c")),
        (r"\x61\142\x{63}", "abc"),
        (r"^abc$", "abc"),
    ],
)
def test_the_pieces_of_a_pattern(pattern: str, expected: str) -> None:
    assert read(grams_needed(pattern)) == expected


def test_long_literals_ask_for_a_few_grams_and_short_ones_for_none() -> None:
    long = literal_grams("".join(chr(0x4E00 + number) for number in range(300)))
    assert isinstance(long, Every)
    assert 8 <= len(long.needs) <= 48
    assert literal_grams("ab") == NO_NEED


def test_many_alternatives_do_not_multiply_without_end() -> None:
    need = grams_needed("(abc|abd|abe)" * 20)
    assert need != NO_NEED


# --- refusals ---


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (r"(?<=a)b", "lookbehind (?<=...)"),
        (r"(?<!a)b", "negative lookbehind (?<!...)"),
        (r"a(?=b)", "lookahead (?=...)"),
        (r"a(?!b)", "negative lookahead (?!...)"),
        (r"(a)\1", r"backreference \1"),
        (r"(?P<n>a)(?P=n)", "backreference (?P=name)"),
        (r"(?>a)", "atomic group (?>...)"),
        (r"a++", "repetition ++ (possessive or nested)"),
        (r"(?x)a", "the flags (?x...)"),
        (r"a\Z", r"\Z (write \z for the end of the text)"),
        (r"a{1001}", "repetition {1001}, beyond a thousand"),
        (r"(?:a{1,1000}){1,2}", "repetition"),
        (r"(?#c)a", "comment (?#...)"),
        (r"(?(1)a|b)", "condition"),
        (r"(?R)", "recursion (?R)"),
        (r"\h", r"\h (write [ \t])"),
        (r"\u0041", r"\u (write \x{...})"),
        (r"a(", "no regular expression: missing )"),
        (r"[a", "no regular expression: missing ]"),
        (r"*a", "no regular expression: no argument for repetition operator: *"),
    ],
)
def test_a_refusal_names_the_construct(pattern: str, named: str) -> None:
    with pytest.raises(re2.error) as refused:
        re2.compile(pattern.encode(), QUIET)
    [said] = refused.value.args
    assert named in refusal(pattern, said.decode())
