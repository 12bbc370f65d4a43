"""The store as recall sees it: the search over everything, and the text of an object."""

from collections.abc import Callable

from pagein.errors import NotRecallable
from pagein.model.chats import ChatTurn, page_of, pages_as_text, turns_from_value
from pagein.model.identifiers import version_named
from pagein.model.search_query import Results, Search
from pagein.model.versions import Version
from pagein.policy.stubs.object_lines import object_line
from pagein.store.search.shelves import SearchedStore
from pagein.store.search.store_search import StoreSearch


class StoredTexts:
    """The versions of every object of a store.

    refresh: brings the objects up to the journals; called before each search
    """

    def __init__(self, store: SearchedStore, refresh: Callable[[], object] = lambda: None) -> None:
        self._store = store
        self._refresh = refresh
        self._search = StoreSearch(store, evicted=False)

    def search(self, asked: Search) -> Results:
        """Return a page of hits in the versions of objects. Raises BadInput for an invalid pattern or filter."""
        self._refresh()
        return self._search.search(asked)

    def text(self, name: str, turns: tuple[int, int] | None = None) -> str | None:
        """Return the text of an object, or of some turns of a chat; None if the object is unknown.

        name: id or nickname, for an older version with `@` and its number.

        Raises NotRecallable for an object without this version, without turns, or without content.
        """
        version = self._version(name)
        if version is None:
            return None
        pages = _pages(version)
        if turns is not None:
            if not pages:
                raise NotRecallable(f"a {version.type} has no turns; leave them out")
            shown = {page: field for page, field in pages.items() if turns[0] <= page[0] <= turns[1]}
            if not shown:
                raise NotRecallable(f"the chat has the turns 1 to {max(pages)[0]}")
            pages = shown
        if pages:
            return self._chat_text(version, pages)
        content = self._store.content(version)
        if content is None:
            raise NotRecallable(_why_without_content(version))
        return content

    def close(self) -> None:
        """Close the index of the search."""
        self._search.close()

    def _version(self, name: str) -> Version | None:
        version, asked = self._store.current(name), version_named(name)
        if version is not None or asked is None:
            return version
        version = self._store.current(asked[0])
        if version is None:
            return None
        found = self._store.version(version.id, asked[1])
        if found is None:
            raise NotRecallable(f"{asked[0]} has no version {asked[1]}; its versions are 1 to {version.number}")
        return found

    def _chat_text(self, version: Version, pages: dict[tuple[int, int], str]) -> str:
        decoded: dict[tuple[int, int], ChatTurn] = {}
        for page, field in pages.items():
            [decoded[page]] = turns_from_value(self._store.additional(version, field))
        return pages_as_text(decoded)


def _why_without_content(version: Version) -> str:
    if version.deleted:
        before = f"; {version.id}@{version.number - 1} is the version before" if version.number > 1 else ""
        return f"it was deleted{before}"
    return f"it has no content: {object_line(version)}"


def _pages(version: Version) -> dict[tuple[int, int], str]:
    """Return the fields with the pages of a chat, by turn and page."""
    return {page: field for field in version.additional if (page := page_of(field)) is not None}
