"""The lock by which running agents keep a gateway running."""

import subprocess
import sys
from pathlib import Path

from pagein.gateway.launch.lease import LeaseWatch, take

_HOLD = "import sys, pathlib\nfrom pagein.gateway.launch.lease import take\nheld = take(pathlib.Path(sys.argv[1]))\nprint(held is not None, flush=True)\nsys.stdin.read()"


def test_a_gateway_is_over_when_its_last_holder_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "gateways" / "1.lease"
    first, second = take(file), take(file)
    assert first is not None
    assert second is not None
    watch = LeaseWatch(file)
    assert not watch.is_over()
    first.release()
    assert not watch.is_over()
    second.release()
    assert watch.is_over()


def test_a_gateway_that_is_about_to_end_takes_no_new_holder(tmp_path: Path) -> None:
    file = tmp_path / "1.lease"
    file.touch()
    watch = LeaseWatch(file)
    assert watch.is_over()
    assert take(file) is None


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "1.lease"
    with subprocess.Popen(  # noqa: S603 -- ourselves
        [sys.executable, "-c", _HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        watch = LeaseWatch(file)
        assert not watch.is_over()
        process.kill()
        process.wait()
    assert watch.is_over()


def test_a_file_that_is_gone_has_no_holders(tmp_path: Path) -> None:
    assert LeaseWatch(tmp_path / "gone.lease").is_over()
