"""The values of pools: objects known to a branch, objects in the metadata pool, and active objects.

index: every object that the branch met. The metadata pool: those that the model sees as a line each. The active content:
those that it sees whole. Each is a part of the one before. Objects enter the first two and never leave them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pagein.model.shared_collections import SharedMap

ContentState: TypeAlias = Literal["text", "unread", "none"]
"""text: there is a text, which may be empty. unread: only the name is known. none: there is no text (a binary or deleted file)."""
ActiveBy: TypeAlias = Literal["window", "hand"]
"""window: a recent call showed it. hand: it was activated, or it is pinned."""
ChangeKind: TypeAlias = Literal["listed", "updated", "activated", "refreshed", "deactivated", "pinned", "unpinned"]
"""A change of state.

listed: the object entered the metadata pool.
updated: its metadata changed.
activated, deactivated: its content entered or left the window.
refreshed: its active content is a new version.
"""


@dataclass(frozen=True, slots=True)
class PoolRules:
    """The bounds of the active content.

    recent_calls: calls of a turn whose results stay active.
    recent_turns: turns whose calls count, the current one included.
    by_hand: activations by hand that stay active, the newest ones.
    """

    recent_calls: int = 5
    recent_turns: int = 3
    by_hand: int = 20

    @property
    def bounds(self) -> tuple[int, int, int]:
        """The three bounds, as notes tell them."""
        return self.recent_calls, self.recent_turns, self.by_hand


USUAL: Final = PoolRules()


@dataclass(frozen=True, slots=True)
class PooledObject:
    """What a branch knows of an object.

    version: identifies the content; equal versions are equal texts. None without a text.
    chars: length of the content; 0 without a text.
    path, file_type: of files. tool, args, status: of tool calls; status is `ok` or `fail`.
    place: its place in the metadata pool, from 0; None for an object that is only in the index.
    locked: whether it can be neither activated nor deactivated.
    deleted: whether it is gone at its origin.
    shows: of a call that read whole files: their ids, each with the version that its result showed; "" if the result only
        names the file.
    view: names and values of the fields that a person chose for its line, as the shown version has them; empty for those of
        the type.
    """

    id: str
    type: str
    content: ContentState = "unread"
    version: str | None = None
    chars: int = 0
    path: str = ""
    file_type: str = ""
    tool: str = ""
    args: str = ""
    status: str = ""
    nickname: str = ""
    place: int | None = None
    locked: bool = False
    deleted: bool = False
    shows: tuple[tuple[str, str], ...] = ()
    view: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ActiveContent:
    """An object that the window shows whole.

    version: the version that is shown. There is never a second one of the same object.
    since: number of the change that brought this version in. What has stood unchanged for longest has the lowest.
    turn: the turn in which it was last used.
    """

    id: str
    version: str
    since: int
    turn: int
    by: ActiveBy


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A change of state, to be reported at the end of the prompt.

    behind: number of messages of the conversation before the place where it is told: after the first message of the user's
        side that no request showed yet. Later requests tell it there, too. A layout tells it after all results of an answer.
    """

    kind: ChangeKind
    id: str
    behind: int


@dataclass(frozen=True, slots=True)
class PoolEpoch:
    """A run of requests in which the metadata block in front of the chat stays as it is.

    number: counts the epochs, from 0.
    listed: number of objects in the metadata block: those with a place below it. Later ones are news.
    changes: number of changes before it. Later ones are news.
    messages: number of messages of the branch before it.
    known: the objects as the metadata block shows them.
    """

    number: int = 0
    listed: int = 0
    changes: int = 0
    messages: int = 0
    known: SharedMap[PooledObject] = field(default_factory=SharedMap)


@dataclass(frozen=True, slots=True)
class WindowSlot:
    """A recent call, and the objects kept active by the call.

    call_id: id of the call; "" for a read whose call is not known yet.
    """

    turn: int
    call_id: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolState:
    """The pools at an entry of a branch. Replaced as a whole, never changed.

    index: every object that the branch met, by id.
    order: ids of the metadata pool by place (as a text).
    size: number of objects in the metadata pool.
    active: the active content, in the order in which it came in.
    pinned: ids of the objects that stay active until they are unpinned or deactivated, in the order of their pins.
    put_away: ids of the objects that were deactivated by hand. No recent call makes them active again; reading or
        activating them does.
    window: the recent calls, oldest first.
    turn: number of turns so far.
    messages: number of messages of the conversation, since the host last compacted it.
    ahead: number of messages to come before something can be told: 1 after an answer, 2 after a request.
    changes: number of changes so far.
    news: the changes at each number of messages (as a text).
    """

    index: SharedMap[PooledObject] = field(default_factory=SharedMap)
    order: SharedMap[str] = field(default_factory=SharedMap)
    size: int = 0
    active: tuple[ActiveContent, ...] = ()
    pinned: tuple[str, ...] = ()
    put_away: SharedMap[bool] = field(default_factory=SharedMap)
    window: tuple[WindowSlot, ...] = ()
    turn: int = 0
    messages: int = 0
    ahead: int = 0
    changes: int = 0
    news: SharedMap[tuple[PoolChange, ...]] = field(default_factory=SharedMap)
    epoch: PoolEpoch = field(default_factory=PoolEpoch)

    def pool(self, first: int = 0, end: int | None = None) -> Iterator[PooledObject]:
        """The objects of the metadata pool in order, from one place up to another."""
        for place in range(first, self.size if end is None else end):
            yield self.index[self.order[str(place)]]

    def listed(self) -> Iterator[PooledObject]:
        """The objects of the metadata block, as they were when its epoch began."""
        for place in range(self.epoch.listed):
            yield self.epoch.known[self.order[str(place)]]

    def news_at(self, messages: int) -> tuple[PoolChange, ...]:
        """The changes of this epoch that stand after this number of messages."""
        return self.news.get(str(messages), ())

    def active_ids(self) -> frozenset[str]:
        """The ids of the active objects."""
        return frozenset(one.id for one in self.active)

    def is_active(self, object_id: str) -> bool:
        """Whether the window shows the object whole."""
        return any(one.id == object_id for one in self.active)

    def sets(self) -> Mapping[str, tuple[str, ...]]:
        """The sets of the session object: `active_set`, `inactive_set` and `pinned_set`."""
        active = self.active_ids()
        return {
            "active_set": tuple(one.id for one in self.active),
            "inactive_set": tuple(one.id for one in self.pool() if one.id not in active),
            "pinned_set": self.pinned,
        }


NO_POOLS: Final = PoolState()
