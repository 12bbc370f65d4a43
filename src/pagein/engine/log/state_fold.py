"""Fold the entries of a branch into the state of a session (law 6). Only `step` makes states; they share structure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pagein.engine.log import pin_state as the_hand
from pagein.engine.log.argument_masks import CallMessage, successful_calls, with_halves
from pagein.engine.log.argument_masks import residents as masked_residents
from pagein.engine.log.piece_changes import changed_pieces, tokens_in_place
from pagein.engine.log.pin_state import NOTHING_AWAY, Hand
from pagein.engine.log.prompt_tokens import with_tools, with_usage
from pagein.engine.log.request_draft import (
    Cell,
    RequestDraft,
    WindowPiece,
    cells_of,
    cut,
    length,
    pieces_since,
    push,
    size,
)
from pagein.engine.log.server_residents import residents_of_finished_turns
from pagein.engine.log.state import Rules, State
from pagein.engine.log.turn_removal import is_spoken, without, words_said
from pagein.model.entries import (
    Body,
    CompactionEntry,
    EpochEntry,
    InsertEntry,
    MessageEntry,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    RequestSent,
    Restoration,
    TurnsLeft,
)
from pagein.model.journal_notes import (
    BreakpointChoice,
    GuardReportNote,
    PrefixDigests,
    StoredNote,
    ToolsLaterNote,
    ToolsNote,
    UsageNote,
    WithheldReadNote,
)
from pagein.model.messages import Text, ToolCall, ToolResult
from pagein.policy.economics.rewrite_cost import Account
from pagein.policy.eviction import recall_warmth
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.residency import EMPTY, Resident, ResidentSet, lines_read, resident_kind
from pagein.policy.eviction.residents import WHOLE
from pagein.policy.privacy.exclusions import may_show_excluded


def step(state: State, body: Body, rules: Rules) -> State:
    """Return the state after a further entry.

    Amortised O(1). An epoch, a compaction or a pin costs as much as it changes.
    """
    if isinstance(body, MessageEntry):  # neither an order nor a recall
        return _add_message(state, body, rules)
    if isinstance(body, RequestSent):
        return _add_request(state, body, rules)
    before, state = state.hand, _with_orders_and_recalls(state, body)
    match body:
        case PreviewEntry():
            state = _apply_previews(state, body, rules)
        case EpochEntry():
            state = _apply_epoch(state, body, rules)
        case InsertEntry():
            state = _apply_insert(state, body, rules)
        case CompactionEntry():
            state = _apply_compaction(state, body.kept, rules)
        case NoteEntry():
            state = _apply_pins(state, before, rules) if state.hand is not before else _apply_note(state, body.note)
        case _ if state.hand is not before:
            state = _apply_pins(state, before, rules)
    return state


def _with_orders_and_recalls(state: State, body: Body) -> State:
    hand, warm = the_hand.step(state.hand, body), recall_warmth.step(state.warm, body)
    return state if hand is state.hand and warm is state.warm else replace(state, hand=hand, warm=warm)


def _add_request(state: State, sent: RequestSent, rules: Rules) -> State:
    if state.hand.epoch_now or state.warm.objects or state.warm.tool_calls:
        state = _with_orders_and_recalls(state, sent)
    ready = _with_draft(state, state.draft.ready, rules, news=[piece for _, piece in state.draft.news])
    account = Account(sent.bill, sent.saved, sent.absent, anew=sent.anew, found=sent.found)
    sent_at = _latest(state.sent_at, sent.moment)
    return replace(ready, sent=ready.draft.tip, sent_at=sent_at, account=account, has_frontier=False)


def _apply_note(state: State, note: StoredNote) -> State:  # noqa: PLR0911 -- a case for each kind of note
    match note:
        case WithheldReadNote(digest=digest):
            return replace(state, withheld=state.withheld | {digest})
        case UsageNote(usage=usage):
            return with_usage(state, usage)
        case PrefixDigests(tokens=tokens):
            return replace(state, prefix=tokens)
        case BreakpointChoice(frontier=frontier):
            return replace(state, has_frontier=frontier is not None)
        case ToolsNote(tools=tuple() as tools):
            return with_tools(state, tools)
        case ToolsLaterNote():
            return with_tools(state, ())
        case GuardReportNote():
            return replace(state, guarded=True)
        case _:
            return state


def _add_message(state: State, said: MessageEntry, rules: Rules) -> State:
    moved = _with_draft(state, state.draft.with_said(said.message, said.result_tokens, said.tokens), rules)
    now = _latest(state.now, said.message.at)
    standing = moved.standing
    if standing is not state.standing or standing.call != moved.draft.calls:  # otherwise no resident has aged
        standing = standing.at_call(moved.draft.calls, rules.residency.rules)
    usage = said.message.usage if said.message.role == "assistant" else None
    return with_usage(_hasten_residents(replace(moved, standing=standing, now=now)), usage)


def _with_draft(
    state: State,
    draft: RequestDraft,
    rules: Rules,
    kept: Mapping[tuple[int, int], PagedOut] | None = None,
    news: Sequence[WindowPiece] | None = None,
) -> State:
    """Advance the draft, and make newly settled results residents.

    news: the newly settled messages; None to look them up.
    kept: previews among the new results, by message number and block index.
    """
    before = state.draft.tip
    if draft.tip is before:
        return replace(state, draft=draft)
    calls = {
        block.id: block for block in (before.piece.message.blocks if before else ()) if isinstance(block, ToolCall)
    }
    standing, hand, hasty = state.standing, state.hand, state.hasty
    stay = hand.pinned | hand.vetoed
    # The message at the old end may have been merged with the next; it is an assistant's and holds no result.
    known = before.length if before else 0
    pieces = news or pieces_since(draft.tip, known)
    in_front = (draft.tip.tokens if draft.tip else 0) - sum(piece.weight for piece in pieces)
    answered: dict[str, int] = {}
    masks = _mask_rules(state, rules)
    for place, (piece, front) in enumerate(_with_fronts(before, pieces, in_front), start=known):
        standing = _with_accesses(standing, piece, calls, rules)
        answered.update(successful_calls(piece) if masks is not None else ())
        for resident in _residents(place, piece, calls, rules, kept or {}, hand):
            if resident.call_id not in stay:
                standing = standing.with_resident(replace(resident, before=front), rules.residency.rules)
                hasty = hasty or resident.call_id in hand.dropping
    for resident in _arguments(before, answered, state, rules):
        if resident.call_id not in stay:
            standing = standing.with_resident(resident, rules.residency.rules)
            hasty = hasty or resident.call_id in hand.dropping
    if rules.residency.rules.lets_server_results_go and any(is_spoken(piece.message) for piece in pieces):
        for resident in residents_of_finished_turns(draft.tip, known, rules.residency):
            if resident.call_id not in stay:
                standing = standing.with_return(resident, rules.residency.rules)
                hasty = hasty or resident.call_id in hand.dropping
    # a new access to a file makes its older reads wait again
    hasty = hasty or (bool(hand.dropping) and standing.old_tokens != state.standing.old_tokens)
    return replace(state, draft=draft, standing=standing, hasty=hasty)


def _with_fronts(tip: Cell | None, pieces: Iterable[WindowPiece], in_front: int) -> Iterator[tuple[WindowPiece, int]]:
    """Yield the pieces after a message, each with the tokens in front of all results that came with it.

    A cache may have entries only where requests end, so of results that came together the first is written again too.
    """
    born = None if tip is None else tip.piece.born
    while tip is not None and tip.piece.born == born and tip.piece.message.role != "assistant":
        tip = tip.before
    front = 0 if tip is None else tip.tokens
    for piece in pieces:
        if piece.born != born or piece.message.role == "assistant":
            born, front = piece.born, in_front
        yield piece, front
        in_front += piece.weight


def _mask_rules(state: State, rules: Rules) -> ArgumentRules | None:
    """Return which arguments may be masked in a session; None if masks are off."""
    settings = rules.residency.arguments
    return None if settings is not None and settings.guarded and not state.guarded else settings


def _arguments(asking: Cell | None, answered: Mapping[str, int], state: State, rules: Rules) -> Iterator[Resident]:
    """Yield the arguments of a message's calls that may be masked later."""
    settings = _mask_rules(state, rules)
    message = CallMessage.of(asking) if settings is not None and answered else None
    if settings is not None and message is not None:
        yield from masked_residents(message, answered, state.hand, settings, rules.excluded)


def _with_accesses(
    standing: ResidentSet, piece: WindowPiece, calls: Mapping[str, ToolCall], rules: Rules
) -> ResidentSet:
    """Record from a message the accessed files, the changed files, and the start of a new task."""
    if piece.born is None:
        return standing
    for block in piece.message.blocks:
        call = calls.get(block.call_id) if isinstance(block, ToolResult) else None
        for access in () if call is None else call.accesses:
            done = isinstance(block, ToolResult) and not block.is_error
            changed = done and access.op != "read"
            whole = done and (access.op == "write" or (access.op == "read" and access.start is access.end is None))
            standing = standing.with_access(access.path, piece.born, rules.residency.rules, edited=changed, whole=whole)
    if not any(isinstance(block, Text) for block in piece.message.blocks):  # results alone are nobody's words
        return standing
    words = words_said(piece.message)
    return standing if words is None else standing.with_task(piece.born, rules.residency.rules, words)


def _latest(one: float | None, other: float | None) -> float | None:
    return max(one, other) if one is not None and other is not None else one if other is None else other


def _residents(
    place: int,
    piece: WindowPiece,
    calls: dict[str, ToolCall],
    rules: Rules,
    kept: Mapping[tuple[int, int], PagedOut],
    hand: Hand,
) -> Iterable[Resident]:
    if piece.born is None:
        return
    tokens = iter(piece.tokens)
    for index, block in enumerate(piece.message.blocks):
        if not isinstance(block, ToolResult):
            continue
        count = next(tokens, 0)
        call = calls.get(block.call_id)
        found = None if call is None else resident_kind(call, block, count, rules.residency)
        if call is not None and found is not None and not may_show_excluded(call, rules.excluded):
            kind, path = found
            lines = lines_read(call) if path else WHOLE
            whole = kept.get((place, index)) or (None if hand.away is NOTHING_AWAY else hand.stands_for(block))
            shown = count if whole is None else tokens_in_place(block.text, whole)
            yield Resident(
                block.call_id, place, index, shown, piece.born, kind=kind, kept=whole, path=path, lines=lines
            )


def _apply_previews(state: State, previews: PreviewEntry, rules: Rules) -> State:
    """Settle the newest messages with previews in place of large outputs, before any request shows them."""
    draft = state.draft.ready
    kept = {(one.message, one.block): one for one in previews.paged}
    tip = cut(draft.tip, length(state.draft.tip))
    for _, piece in changed_pieces(length(state.draft.tip), [one for _, one in state.draft.news], kept):
        tip = push(tip, piece)
    return _with_draft(state, replace(draft, tip=tip), rules, kept)


def _apply_epoch(state: State, epoch: EpochEntry, rules: Rules) -> State:
    changes: tuple[PagedOut | Restoration, ...] = (*epoch.paged, *epoch.restored)
    if any(one.message >= length(state.draft.tip) for one in changes):  # newer than the last request
        state = _with_draft(state, state.draft.ready, rules)
    draft = state.draft
    gone = {(one.message, one.block): one for one in changes}
    tip = cut(draft.tip, epoch.frontier)
    in_front: dict[int, int] = {}
    for place, piece in changed_pieces(epoch.frontier, pieces_since(draft.tip, epoch.frontier), gone):
        in_front[place] = size(tip)
        tip = push(tip, piece)
    left = state.standing.without(gone, in_front)
    standing = with_halves(left, state.standing, epoch.paged, in_front, rules.residency)
    rewritten = replace(state, draft=replace(draft, tip=tip), standing=standing, epoch=epoch.number, hasty=True)
    back = frozenset(one.call_id for one in epoch.restored) - state.hand.calls_that_stay
    # a recalled result counts as new
    rewritten = _with_residents(
        rewritten, (replace(one, born=draft.calls) for one in _of_calls(rewritten, back, rules)), rules
    )
    return _without_turns(rewritten, epoch.turns, rules) if epoch.turns else rewritten


def _without_turns(state: State, turns: Sequence[TurnsLeft], rules: Rules) -> State:
    """Remove whole turns and build the window anew behind them.

    Cells before the first removed turn stay the same objects.
    """
    if any(one.message >= length(state.draft.tip) for one in turns):
        state = _with_draft(state, state.draft.ready, rules)
    old = state.draft
    stays = without(pieces_since(old.tip, 0), turns)
    draft = RequestDraft(cut(old.tip, old.head), old.head, old.said, old.calls, old.repairs)
    fresh = replace(state, draft=draft, standing=EMPTY, hasty=True)
    for piece in (*stays[old.head :], *old.open_pieces()):
        fresh = _with_draft(fresh, fresh.draft.with_piece(piece), rules)
    tip = cut(old.tip, min(min(one.message, one.places[0][0]) for one in turns))
    for piece in pieces_since(fresh.draft.tip, length(tip)):
        tip = push(tip, piece)
    standing = fresh.standing.with_work(state.standing.work).at_call(fresh.draft.calls, rules.residency.rules)
    return replace(fresh, draft=replace(fresh.draft, tip=tip), standing=standing)


# --- pins ---


def _apply_pins(state: State, before: Hand, rules: Rules) -> State:
    """Remove newly pinned results from the resident set, and return unpinned results to the set."""
    now = state.hand.calls_that_stay
    held = [(one.message, one.block) for one in state.standing.all() if one.call_id in now - before.calls_that_stay]
    if held:
        state = replace(state, standing=state.standing.without(held))
    back = _with_residents(state, _of_calls(state, before.calls_that_stay - now, rules), rules)
    standing = back.standing.at_call(back.draft.calls, rules.residency.rules)
    return _hasten_residents(replace(back, standing=standing, hasty=True))


def _hasten_residents(state: State) -> State:
    """Let dropped results be evicted after a single model call has seen them.

    Searches only while `hasty` says that some may still wait.
    """
    dropping, calls = state.hand.dropping, state.draft.calls
    if not dropping or not state.hasty:
        return state
    young = any(one.call_id in dropping and one.born >= calls for one in state.standing.all())
    return replace(state, standing=state.standing.hasten(dropping, calls), hasty=young)


def _with_residents(state: State, residents: Iterable[Resident], rules: Rules) -> State:
    standing = state.standing
    for one in residents:
        standing = standing.with_return(one, rules.residency.rules)
    return state if standing is state.standing else replace(state, standing=standing)


def _of_calls(state: State, wanted: Collection[str], rules: Rules) -> Iterator[Resident]:
    """Yield the evictable results and arguments of the calls, as the window shows them."""
    if wanted and rules.residency.rules.lets_server_results_go:
        servers = residents_of_finished_turns(state.draft.tip, 0, rules.residency)
        yield from (one for one in servers if one.call_id in wanted)
    calls: dict[str, ToolCall] = {}
    asking: Cell | None = None
    in_front = 0
    for place, cell in enumerate(cells_of(state.draft.tip) if wanted else ()):
        piece = cell.piece
        if piece.message.role == "assistant":
            asking = cell
        calls.update((block.id, block) for block in piece.message.blocks if isinstance(block, ToolCall))
        if any(isinstance(block, ToolResult) and block.call_id in wanted for block in piece.message.blocks):
            found = _residents(place, piece, calls, rules, {}, state.hand)
            yield from (replace(one, before=in_front) for one in found if one.call_id in wanted)
            done = {call: born for call, born in successful_calls(piece) if call in wanted}
            yield from _arguments(asking, done, state, rules)
        in_front += piece.weight


def _apply_insert(state: State, body: InsertEntry, rules: Rules) -> State:
    """Append an insert to the newest message, which no request has shown yet."""
    state = _with_draft(state, state.draft.ready, rules)
    tip = state.draft.tip
    if tip is None or tip is state.sent:
        return state
    block = Text(body.text, injected=the_hand.label(body.kind, body.names))
    message = replace(tip.piece.message, blocks=(*tip.piece.message.blocks, block))
    longer = push(tip.before, replace(tip.piece, message=message, weight=tip.piece.weight + body.tokens))
    return replace(state, draft=replace(state.draft, tip=longer))


def _apply_compaction(state: State, kept: int, rules: Rules) -> State:
    """Restart the window after the leading system messages.

    Messages that the client kept stay as rendered, with their stubs.
    """
    old = state.draft
    first_kept = old.said - kept
    pieces = [*pieces_since(old.tip, old.head), *old.open_pieces()]
    tip = cut(old.tip, old.head)
    draft = RequestDraft(tip, old.head, old.said, old.calls, old.repairs)
    account = replace(state.account, absent=-state.offered, anew=0, found=0)
    fresh = replace(state, draft=draft, standing=EMPTY, epoch=state.epoch + 1, account=account, hasty=True)
    for piece in pieces:
        if piece.said > first_kept:
            fresh = _with_draft(fresh, fresh.draft.with_piece(piece), rules)
    blocks = [
        block
        for piece in (*pieces_since(fresh.draft.tip, 0), *fresh.draft.open_pieces())
        for block in piece.message.blocks
    ]
    hand = fresh.hand.after_compaction(blocks)
    standing = fresh.standing.with_work(state.standing.work).at_call(fresh.draft.calls, rules.residency.rules)
    return replace(fresh, standing=standing, hand=hand)
