"""Orders of people about stored objects: nicknames, the fields of metadata views, and summaries of chats.

Rules of this file
------------------
1. An order is an entry of the journal `ORDERS`, stored in the transaction that stores the object's new version.
2. Carried out again from the journal, at its place in it, an order gives the same version. So objects that were dropped and made
   again have the names and views that people gave.
3. The version of an order has the content and the time of the latest version by time: what its session recorded before the order
   may be taken in after it, and is newer.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

from pagein.engine.log.journal import entry_name
from pagein.model.derived_versions import ORDER_REASONS, ORDERS
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import ChatSummaryNote, ObjectNameNote, ObjectViewNote
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Outcome, Write, Written
from pagein.policy.privacy.erasure import holds_erasure
from pagein.ports import JournalStore, ObjectStore

NAME, VIEW, SUMMARY = ORDER_REASONS
ObjectOrder: TypeAlias = ObjectNameNote | ObjectViewNote | ChatSummaryNote


class OrderedStore(JournalStore, ObjectStore, Protocol):
    """A store with journals and objects."""


def is_order(version: Version) -> bool:
    """Return whether a version was made by an order."""
    return version.writer.kind == "client" and version.writer.reason in ORDER_REASONS


def give_order(
    store: OrderedStore, order: ObjectOrder, at: float, catch_up: Callable[[], object] = lambda: None
) -> Outcome | None:
    """Journal an order and carry it out, both or neither.

    at: seconds since 1970
    catch_up: brings the objects up to the journals, so that the order meets the same objects when it is carried out again

    Returns the outcome; None for an unknown object. A refused order is not journaled. Raises StoreError.
    """
    with store.exclusive():
        catch_up()
        body, parent = NoteEntry.of(order), store.leaf(ORDERS)
        entry = Entry(entry_name(parent, body), parent, body, at)
        outcome = carry_out(store, entry)
        if isinstance(outcome, Written) and outcome.change != "unchanged":
            store.append(ORDERS, [entry])
        return outcome


def carry_out(store: OrderedStore, entry: Entry) -> Outcome | None:
    """Write the version that a journaled order gives. An order carried out before changes nothing.

    Returns None for an entry without an order, and for an object that is not there.
    """
    order = entry.body.note if isinstance(entry.body, NoteEntry) else None
    if not isinstance(order, ObjectOrder):
        return None
    head, latest = store.current(order.object_id), store.latest_versions(order.object_id, 1)
    if head is None or not latest:
        return None
    draft = replace(_copy(store, latest[0]), nickname=head.nickname, view=head.view, locked=head.locked)
    if isinstance(order, ObjectNameNote):
        is_erased = order.nickname is not None and holds_erasure(order.nickname)
        draft, reason = replace(draft, nickname=None if is_erased else order.nickname), NAME
    elif isinstance(order, ObjectViewNote):
        draft, reason = replace(draft, view=order.fields), VIEW
    else:
        is_erased = holds_erasure(order.long) or holds_erasure(order.short)
        told = {} if is_erased else {"long_summary": order.long, "short_summary": order.short}
        metadata = {**draft.metadata, "summarised_turns": order.turns}
        draft, reason = replace(draft, metadata=metadata, additional={**draft.additional, **told}), SUMMARY
    # the content is still what that session wrote then, and is found with it; what it wrote later may be taken in later, and is newer
    at = latest[0].at
    writer = Writer("client", reason, latest[0].writer.session)
    return store.write(Write(f"{ORDERS}:{entry.id}", draft, at, writer=writer))


def _copy(store: OrderedStore, version: Version) -> Draft:
    additional = {name: store.additional(version, name) for name in version.additional}
    return version.draft(store.content(version), additional)
