"""Cache entries as extensions of shorter entries, and the refresh of extended entries by a read (A6).

Rules of this file
------------------
1. Entries form trees: `above` is the nearest stored prefix that an entry extends.
2. A `Group` is a run of entries on one path, `tip` the deepest, that were last used together and have the same TTL. A
   use of the tip is a use of the whole group, so a conversation that only grows costs one group per call, not its whole
   past.
3. The use of an entry inside a group moves it and the entries above it out of the group. The entries below stay.
4. A dead entry never becomes live again: a write at its place makes a new one. So dead entries may be skipped for good.
"""


class Group:
    """Entries last used together.

    used: time of the last use.
    ttl: TTL of each entry, in seconds.
    tip: the deepest entry of the run.
    beyond: the entry that the topmost entry of the group extends.
    gapped: dead entries lie between the topmost entry and `beyond`, so the two never share a group.
    """

    __slots__ = ("beyond", "gapped", "tip", "ttl", "used")

    def __init__(self, used: float, ttl: float, tip: "CacheEntry", beyond: "CacheEntry | None") -> None:
        self.used = used
        self.ttl = ttl
        self.tip = tip
        self.beyond = beyond
        self.gapped = False

    def alive(self, at: float) -> bool:
        return at - self.used <= self.ttl


class CacheEntry:
    """A stored prefix."""

    __slots__ = ("above", "group", "lost", "usable_from")
    group: Group

    def __init__(self, at: float, ttl: float, usable_from: float, above: "CacheEntry | None", *, joins: bool) -> None:
        """joins: the entry may share the group of `above`, which is used at the same moment."""
        self.above = above
        self.usable_from = usable_from
        self.lost = False
        group = above.group if joins and above is not None else None
        if group is not None and group.tip is above and group.used == at and group.ttl == ttl:
            group.tip = self
            self.group = group
        else:
            self.group = Group(at, ttl, self, above)

    @property
    def ttl(self) -> float:
        return self.group.ttl

    def alive(self, at: float) -> bool:
        return not self.lost and self.group.alive(at)

    def use(self, at: float) -> None:
        """Use this entry and every live entry above."""
        group = _split_group(self)
        group.used = max(group.used, at)
        while (up := group.beyond) is not None:
            if not up.group.alive(at):
                group.beyond, group.gapped = up.group.beyond, True
            elif up.group.ttl == group.ttl and not group.gapped:
                _move_entries(up, group)
            else:
                group = _split_group(up)
                group.used = max(group.used, at)

    def use_alone(self, at: float) -> None:
        """Use this entry alone. Only for entries that never joined a group."""
        self.group.used = max(self.group.used, at)


def _split_group(entry: CacheEntry) -> Group:
    """The group with this entry as the tip, split off if necessary."""
    left = entry.group
    if left.tip is entry:
        return left
    group = Group(left.used, left.ttl, entry, None)
    _move_entries(entry, group)
    return group


def _move_entries(entry: CacheEntry, group: Group) -> None:
    """Move an entry, and the entries above it in its group, to the top of a group that ends directly below."""
    left = entry.group
    moving: CacheEntry | None = entry
    while moving is not None and moving.group is left:
        moving.group = group
        moving = moving.above
    group.beyond, group.gapped = left.beyond, left.gapped
    left.beyond, left.gapped = entry, False
