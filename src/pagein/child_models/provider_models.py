"""Child models at their providers, called by pydantic-ai. The library is imported with the first call.

Rules of this file
------------------
1. A model is named `provider/model`. Every provider that pydantic-ai knows can be named; its library must be installed.
2. Keys come from the provider's usual variable, such as `ANTHROPIC_API_KEY`, and are kept nowhere else.
3. Each call is made once. The libraries' own retries are off, because limits and costs are counted by the caller.
4. All calls share one pool of connections. A cancelled call closes its connection.
"""

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pagein.errors import BadSetting, RefusedKey, UnknownModel
from pagein.policy.privacy.sent_keys import sent_keys
from pagein.ports import ChildAnswer, ChildRequest
from pagein.providers.vendors import VENDORS

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

_NEEDS: Final = "models for delegated questions need more than is installed: pip install 'pagein[children]'"
_ROUTES: Final = {"openai": "openai-chat"}
"""Providers with several interfaces, and the one that compatible servers have, too."""
_FAMILY: Final = {"openai-chat": "openai", "openai-responses": "openai"}
"""Interfaces of one provider, which share its address."""
_VERSIONED: Final = ("openai",)
"""Providers whose libraries expect the version in the base address."""
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN)\b")
_SECONDS_TO_CONNECT: Final = 20.0


class ProviderModels:
    """Child models at their providers. Implements `ChildModel`.

    default_model: as `provider/model`; "" for none.
    addresses: base address by provider; a vendor's own address, or none, leaves it to the library.
    Raises BadSetting, with the remedy, if the extra `children` is missing.
    """

    def __init__(self, default_model: str = "", addresses: Mapping[str, str] | None = None) -> None:
        if importlib.util.find_spec("pydantic_ai") is None:
            raise BadSetting(_NEEDS)
        self._default = default_model
        own = {one.name: one.address for one in VENDORS}
        self._addresses = {
            name: address.rstrip("/")
            for name, address in (addresses or {}).items()
            if address.rstrip("/") != own.get(name)
        }
        self._models: dict[str, Model[Any]] = {}
        self._http: httpx2.AsyncClient | None = None
        self._sent: set[str] = set()

    @property
    def default_model(self) -> str:
        """The model that answers when no model is named."""
        return self._default

    def knows(self, model: str, /) -> bool:
        """Return whether this is `provider/model` with a provider that can be called."""
        from pydantic_ai.providers import infer_provider_class

        provider, slash, name = model.partition("/")
        if not slash or not name:
            return False
        try:
            infer_provider_class(_ROUTES.get(provider, provider))
        except (ValueError, ImportError):
            return False
        return True

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Call the model once. Raises ChildModelError."""
        from pydantic_ai.exceptions import UserError

        from pagein.child_models.provider_errors import child_error

        named = request.model or self._default
        model = self._model(named)
        try:
            try:
                return await self._call(model, request, named)
            except UserError:
                if request.schema is None or not request.tools:
                    raise
                # no request went out: the model has no structured output beside tools, so the prompt alone asks for it
                return await self._call(model, replace(request, schema=None), named)
        except Exception as problem:
            found = child_error(problem, named, self._sent)
            if found is None:
                raise
            raise found from problem

    async def _call(self, model: "Model[Any]", request: ChildRequest, named: str) -> ChildAnswer:
        from pydantic_ai.exceptions import UnexpectedModelBehavior

        from pagein.child_models import provider_messages as form

        has_schema = bool(model.profile.get("supports_json_schema_output", False))
        settings, messages = form.request_settings(request), form.request_messages(request)
        parameters = form.request_parameters(request, has_schema=has_schema)
        try:
            if not request.stream:
                found = await model.request(messages, settings, parameters)
            else:
                async with model.request_stream(messages, settings, parameters) as stream:
                    async for _ in stream:
                        pass
                    found = stream.get()
        except (
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as problem:  # of an answer in no form of the provider's
            raise UnexpectedModelBehavior(f"{type(problem).__name__}: {problem}") from problem
        return form.child_answer(found, named)

    async def close(self) -> None:
        """Close all connections."""
        http, self._http = self._http, None
        self._models.clear()
        if http is not None:
            await http.aclose()

    def _model(self, named: str) -> "Model[Any]":
        """Return the model of this name. Raises UnknownModel and RefusedKey."""
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        found = self._models.get(named)
        if found is not None:
            return found
        provider, slash, name = named.partition("/")
        if not slash or not name:
            raise UnknownModel(f"{named!r} names no model: write provider/model, such as anthropic/claude-haiku-4-5")
        route = _ROUTES.get(provider, provider)
        try:
            found = infer_model(f"{route}:{name}", lambda _: self._provider(provider, route))
        except UserError as problem:
            variable = _VARIABLE.search(str(problem))
            remedy = f"set {variable[0]}" if variable else str(problem)
            raise RefusedKey(f"there is no key for {named}: {remedy}") from problem
        except (ValueError, ImportError) as problem:
            raise UnknownModel(f"{named} cannot be called: {problem}") from problem
        self._models[named] = found
        return found

    def _provider(self, provider: str, route: str) -> Any:  # noqa: ANN401  each provider has a class of its own
        from pydantic_ai.providers import infer_provider_class

        options: dict[str, Any] = {"http_client": self._connections()}
        family = _FAMILY.get(provider, provider)
        if (address := self._addresses.get(family)) is not None:
            is_bare = family in _VERSIONED and not address.rpartition("/")[2].startswith("v")
            options["base_url"] = f"{address}/v1" if is_bare else address
        return infer_provider_class(route)(**options)

    def _connections(self) -> "httpx2.AsyncClient":
        import httpx2

        if self._http is None:
            # time-outs are the caller's, who knows what is left of an operation
            self._http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(None, connect=_SECONDS_TO_CONNECT),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                event_hooks={"request": [self._note_keys]},
            )
        return self._http

    async def _note_keys(self, request: "httpx2.Request") -> None:
        """Keep the key of a request, to take it out of errors. Each library finds its key in its own way."""
        self._sent |= sent_keys(request.headers.items())
