"""What holds for all tests."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.tools.recall_sessions import Room

from pagein.errors import BadInput
from pagein.testing.desk import Desk
from pagein.testing.postgres_server import programs, running_server
from pagein.testing.store_soundness import unsound_stores

# A fault is told first where it is: from the floor up, and tests of one example before those of many.
_FLOORS = (
    "test_house.py",
    "model",
    "settings",
    "policy",
    "providers",
    "workspace",
    "engine",
    "tools",
    "store",
    "memory",
    "simulator",
    "cli",
    "ui",
    "gateway",
    "adapters",
    "installation",
    "client_windows",
    "mcp",
    "pi_host",
    "replay",
    "past_sessions",
)
# How fast examples come says how busy the machine is, and nothing about what is tested.
settings.register_profile("pagein", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test` tries the same examples each time, so that what lands does not hang on luck; new ones are looked for by
# `make fuzz`, and by each plain run of pytest.
settings.register_profile("same", settings.get_profile("pagein"), derandomize=True)
settings.load_profile("pagein")

# A run in the background of a shell starts with Ctrl-C ignored, and all that it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class FailuresAtOnce:
    """Prints each failure when it happens, and not only at the end of the run."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message.partition("\n")[0] if crash is not None else report.when
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED {report.nodeid}: {reason}", red=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:  # a worker of xdist has none
        session.config.pluginmanager.register(FailuresAtOnce(terminal), "failures-at-once")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one example come first, then those of many (Hypothesis), then the slow ones; each from the floor up."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[bool, bool, int]:
    top = item.path.relative_to(Path(__file__).parent).parts[0]
    floor = _FLOORS.index(top) if top in _FLOORS else len(_FLOORS)
    return (
        item.get_closest_marker("slow") is not None,
        item.get_closest_marker("hypothesis") is not None,
        floor,
    )


@pytest.fixture(autouse=True)
def stores_are_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does, `pagein check` has nothing against the stores that it leaves behind.

    Tests that damage a store on purpose, or put into it what no session would, are marked `damages_store`.
    """
    place = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    is_meant = request.node.get_closest_marker("damages_store") is not None
    if place is not None and not is_meant:
        assert unsound_stores(place) == {}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a real PostgreSQL server, installed first where this machine lets us."""
    if programs() is None:
        script = Path(__file__).resolve().parents[1] / "scripts" / "install_postgres.sh"
        subprocess.run([str(script)], check=False, capture_output=True)  # noqa: S603 -- our own
    with ExitStack() as stack:
        try:
            address = stack.enter_context(running_server())
        except BadInput as problem:
            pytest.skip(str(problem))
        yield address


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A session that reads files in a folder, on a store of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    made = Desk(folder, tmp_path / "store" / "s.pagein")
    yield made
    made.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A session that evicts everything soon, in a folder and on a store of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    made = Room(folder, tmp_path / "store" / "s.pagein")
    yield made
    made.close()
