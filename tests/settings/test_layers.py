import contextlib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pagein
from pagein import wiring
from pagein.engine.engine import Settings
from pagein.errors import BadSetting
from pagein.gateway.settings import GatewaySettings
from pagein.policy.eviction.argument_masks import AT_ONCE, CAREFUL, SOON, ArgumentRules
from pagein.policy.eviction.presets import PRESETS, Preset
from pagein.policy.guards.limits import GuardSettings
from pagein.settings.keys import GATEWAY, KEYS
from pagein.settings.layers import Config, SettingsLayer, merge_layers, of_environment, of_file
from pagein.settings.sources import load_config
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

Write = Callable[[str], Path]


@pytest.fixture
def users(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_where_nobody_says_anything_the_defaults_hold() -> None:
    found = merge_layers([])
    assert (found.engine, found.gateway, found.store) == (Settings(), GatewaySettings(), None)
    assert set(found.origins.values()) == {"default"}


def test_every_setting_of_the_gateway_has_a_key() -> None:
    assert {key.name for key in GATEWAY} == {one.name for one in fields(GatewaySettings)}


def test_each_layer_holds_over_those_before(users: Write, workspace: Path) -> None:
    mine = users("keep_calls = 6\nkeep_reads = 21\nmin_tokens = 300\nport = 1\n")
    (workspace / "pagein.toml").write_text("keep_reads = 22\nmin_tokens = 301\nvalve = 0.8\n")
    told = {"PAGEIN_CONFIG": str(mine), "PAGEIN_MIN_TOKENS": "302", "PAGEIN_PORT": "2", "PAGEIN_MANIFEST": "yes"}
    found = load_config(workspace, {"port": 3}, told)
    residency = found.engine.residency
    ages = residency.rules.ages
    assert (ages["keep_calls"].calls, ages["keep_reads"].calls, residency.min_tokens) == (6, 22, 302)
    assert (found.gateway.port, found.engine.valve.share, found.engine.manifest) == (3, 0.8, True)
    assert found.origins["keep_calls"] == str(mine)
    assert found.origins["keep_reads"] == str(workspace / "pagein.toml")
    assert (found.origins["min_tokens"], found.origins["port"]) == ("environment", "given")


@pytest.mark.parametrize("name", [key.name for key in KEYS.values() if key.own])
def test_a_workspace_cannot_send_requests_elsewhere_nor_open_what_is_closed(name: str) -> None:
    text = f"{name} = {'true' if name == 'subscriptions' else '8790' if name == 'port' else repr('https://elsewhere.test')}"
    with pytest.raises(BadSetting, match=f"'{name}' cannot be set by a workspace.*PAGEIN_{name.upper()}"):
        of_file("pagein.toml", text, own=False)


def test_guards_are_chosen_by_name() -> None:
    names = {"PROFILE": "strict", "RELEVANCE": "refuse", "FOLDERS": "warn"}
    told = of_environment({f"PAGEIN_GUARD_{name}": value for name, value in names.items()})
    assert merge_layers([told]).engine.guards == GuardSettings("strict", "refuse", "warn")
    with pytest.raises(BadSetting, match="PAGEIN_GUARD_PROFILE"):
        of_environment({"PAGEIN_GUARD_PROFILE": "lax"})


def test_excluded_files_are_added_to_and_never_taken_away() -> None:
    found = merge_layers([SettingsLayer("file", {"excluded": ("*.secret",)})])
    assert found.engine.excluded == (*Settings().excluded, "*.secret")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("manifst = true", "pagein.toml: 'manifst' is no setting; did you mean 'manifest'?"),
        ("xyzzy = 1", "pagein.toml: 'xyzzy' is no setting; take it out"),
        ("manifest = 1", "pagein.toml: 'manifest' takes true or false, not 1"),
        ("keep_calls = true", "pagein.toml: 'keep_calls' takes a whole number of 0 or more, not True"),
        ("keep_calls = -1", "pagein.toml: 'keep_calls' takes a whole number of 0 or more, not -1"),
        ('marks = "none"', "pagein.toml: 'marks' takes \"extended\" or \"respected\", not 'none'"),
        ("excluded = '*.x'", "pagein.toml: 'excluded' takes a list of texts"),
        ("[gateway]\nport = 1", "pagein.toml: 'gateway' is no setting"),
        ("= 3", "pagein.toml: is not TOML: Invalid statement (at line 1, column 1)"),
    ],
)
def test_what_cannot_be_in_a_file_is_told_with_file_key_and_remedy(text: str, told: str) -> None:
    with pytest.raises(BadSetting) as caught:
        of_file("pagein.toml", text, own=True)
    assert str(caught.value).startswith(told)


def test_what_cannot_be_in_the_environment_is_told_by_its_variable() -> None:
    for told in ("x", "1.5", "-3", "9" * 30):
        with pytest.raises(BadSetting, match=f"PAGEIN_PORT: takes a whole number of 0 or more, not '{told}'"):
            of_environment({"PAGEIN_PORT": told})
    with pytest.raises(BadSetting, match="PAGEIN_SUBSCRIPTIONS: takes true or false, not 'maybe'"):
        of_environment({"PAGEIN_SUBSCRIPTIONS": "maybe"})


def test_what_does_not_go_together_is_told_with_where_it_was_set() -> None:
    with pytest.raises(BadSetting, match=r"valve.*\(set: valve in a\.toml\)$"):
        merge_layers([SettingsLayer("a.toml", {"valve": 0.3}), SettingsLayer("environment", {"port": 8790})])


def test_a_wrong_value_of_the_command_line_is_told_alone() -> None:
    with pytest.raises(BadSetting, match=r"^port must be from 0 to 65535, not 99999$"):
        merge_layers([SettingsLayer("a.toml", {"valve": 0.5}), SettingsLayer("given", {"port": 99999})])


def test_variables_that_are_empty_say_nothing() -> None:
    assert of_environment({key.variable: " " for key in KEYS.values()}).values == {}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_holds_unless_a_part_of_it_is_set(name: Preset) -> None:
    preset = replace(PRESETS[name].residency, arguments=PRESETS[name].masked_in(PRESETS[name].arguments))
    assert merge_layers([SettingsLayer("file", {"residency": name})]).engine.residency == preset
    found = merge_layers([SettingsLayer("file", {"residency": name, "keep_reads": 12})]).engine.residency
    assert found == replace(preset, rules=preset.rules.with_ages({"keep_reads": 12}))


def test_a_part_of_a_preset_that_is_set_wins_whatever_the_layer() -> None:
    layers = [SettingsLayer("file", {"thinking": "kept"}), SettingsLayer("environment", {"residency": "thrifty"})]
    assert merge_layers(layers).engine.residency == replace(
        PRESETS["thrifty"].residency, thinking="kept", arguments=PRESETS["thrifty"].masked_in("guarded")
    )


def test_the_older_name_of_the_careful_preset_still_reads_as_it() -> None:
    found = merge_layers([of_environment({"PAGEIN_RESIDENCY": "usual"})])
    assert found.values["residency"] == "careful"
    assert found.engine.residency == merge_layers([]).engine.residency
    with pytest.raises(BadSetting, match='PAGEIN_RESIDENCY: takes "careful" or "balanced" or "thrifty", not \'usul\''):
        of_environment({"PAGEIN_RESIDENCY": "usul"})


def test_arguments_are_masked_as_the_preset_or_the_setting_says() -> None:
    def masks(**values: object) -> ArgumentRules | None:
        told = {name: KEYS[name].parse_value(value) for name, value in values.items()}
        return merge_layers([SettingsLayer("file", told)]).engine.residency.arguments

    guarded = replace(SOON, guarded=True)
    assert (masks(), masks(residency="balanced")) == (None, guarded)
    assert masks(residency="thrifty") == replace(AT_ONCE, guarded=True)
    assert masks(arguments="always") == masks(arguments=True) == CAREFUL
    assert masks(arguments="guarded") == replace(CAREFUL, guarded=True)
    assert masks(residency="thrifty", arguments="always") == AT_ONCE
    assert masks(residency="balanced", arguments="always") == SOON
    assert masks(residency="thrifty", arguments=False) is None
    assert merge_layers([of_environment({"PAGEIN_ARGUMENTS": "yes"})]).values["arguments"] == "always"


def test_unused_tools_are_deferred_as_the_preset_or_the_setting_says() -> None:
    def paging(**values: object) -> object:
        told = {name: KEYS[name].parse_value(value) for name, value in values.items()}
        return merge_layers([SettingsLayer("file", told)]).engine.floor_paging

    assert (paging(), paging(residency="balanced"), paging(residency="thrifty")) == ("never", "never", "cold")
    assert (paging(floor_paging=True), paging(floor_paging=False, residency="thrifty")) == ("always", "never")


def test_thinking_of_finished_turns_leaves_by_setting_or_preset() -> None:
    assert merge_layers([]).engine.residency.thinking == "kept"
    assert merge_layers([SettingsLayer("file", {"residency": "thrifty"})]).engine.residency.thinking == "leaves"
    assert merge_layers([SettingsLayer("file", {"thinking": "leaves"})]).engine.residency.thinking == "leaves"
    assert merge_layers([SettingsLayer("file", {"previews_from": 0})]).engine.residency.previews is None
    assert merge_layers([SettingsLayer("file", {"valve": 0.0})]).engine.valve.share == 0


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="PAGEIN_CONFIG: there is no file"):
        load_config(tmp_path, environment={"PAGEIN_CONFIG": str(tmp_path / "none.toml")})
    with pytest.raises(BadSetting, match="cannot be read"):
        load_config(tmp_path, environment={"PAGEIN_CONFIG": str(tmp_path)})
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(BadSetting, match=r"latin\.toml: cannot be read"):
        load_config(tmp_path, environment={"PAGEIN_CONFIG": str(tmp_path / "latin.toml")})


VALUES = st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=9))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*KEYS, "other"]), VALUES, max_size=5))
def test_whatever_a_layer_says_is_taken_or_refused(values: dict[str, object]) -> None:
    told = {f"PAGEIN_{name.upper()}": str(value) for name, value in values.items()}
    with contextlib.suppress(BadSetting):  # and nothing else
        assert isinstance(merge_layers([of_environment(told)]), Config)


def test_an_engine_is_opened_as_is_set(workspace: Path, users: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = workspace.parent / "kept.pagein"
    mine = users(f"store = '{kept}'\npreviews_from = 100\npreviews_show = 30\n")
    monkeypatch.setenv("PAGEIN_CONFIG", str(mine))
    tool = {"name": "run", "input_schema": {"type": "object"}}
    use = {"type": "tool_use", "id": "t1", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "row of output\n" * 80}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    request = {"model": "claude-sonnet-5-5", "max_tokens": 9, "tools": [tool], "messages": messages}
    with pagein.open(workspace=workspace) as engine:
        assert engine.session("one").prepare(request).replaced == 1
    assert kept.is_file()
    assert wiring.store_file(workspace=workspace) == kept
    with pagein.open(":memory:", workspace=workspace, settings=Settings()) as engine:
        assert engine.session("one").prepare(request).replaced == 0
    (workspace / "pagein.toml").write_text("keep_cals = 3")
    with pytest.raises(BadSetting, match="did you mean 'keep_calls'"):
        pagein.open(":memory:", workspace=workspace)


def test_bounds_of_reading_recall_ingest_and_manifest_are_keys() -> None:
    said = {
        "read_min_run": 9,
        "recall_lines": 30,
        "recall_bytes": 5000,
        "search_matches": 7,
        "search_seconds": 2.5,
        "ingest_files": 3,
        "manifest_budget": 900,
    }
    engine = merge_layers([SettingsLayer("file", said)]).engine
    assert engine.reading.min_run == 9
    assert (engine.recall.caps.lines, engine.recall.caps.bytes, engine.recall.matches, engine.recall.seconds) == (
        30,
        5000,
        7,
        2.5,
    )
    assert (engine.ingest.files, engine.manifest_budget) == (3, 900)
    for bad in (
        {"search_matches": 0},
        {"ingest_bytes": 0},
        {"manifest_budget": 0},
        {"search_seconds": 0.0},
        {"recall_bytes": 0},
    ):
        with pytest.raises(BadSetting):
            merge_layers([SettingsLayer("file", bad)])


def test_a_bound_of_recall_that_is_set_holds_for_what_a_model_is_shown(tmp_path: Path) -> None:
    (tmp_path / "pagein.toml").write_text(
        "recall_lines = 100\nsearch_matches = 2\ningest_files = 1\n", encoding="utf-8"
    )
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("".join(f"line {n}\n" for n in range(400)), encoding="utf-8")
    with pagein.open(":memory:", workspace=tmp_path) as engine:
        session = engine.session("s", workspace=tmp_path)
        assert answer(session, "ingest", Call({"paths": ["*.txt"]})).text.startswith(
            "Too many files: 2 matched, limit is 1"
        )
        report = answer(session, "ingest", Call({"paths": ["a.txt"]}))
        [name] = report.details["objectIds"]  # type: ignore[misc]
        assert answer(session, "peek", Call({"id": name, "line": 1, "lines": 300})).text.count("line ") <= 101
        assert answer(session, "search", Call({"pattern": "line"})).text.startswith("Found 2 match(es)")
