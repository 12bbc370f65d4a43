"""Cache entries that extend one another, and how using one keeps those alive that it extends (A6).

Rules of this file
------------------
1. Entries form trees: `above` is the nearest stored prefix that an entry extends.
2. A `Group` is a run of entries on one path, `tip` the deepest, that were last used together and live equally long. Using
   the tip uses all of them at once, so a conversation that only grows pays for one group a call, not for its past.
3. Using an entry inside a group takes it and what is above it out of the group; what is below it stays behind.
4. What has died never comes back: a write at its place makes a new entry. So the dead may be skipped for good.
"""


class Group:
    """Entries used together: when, for how long, from which tip upward, and what the topmost of them extends.

    gapped: dead entries stood between the topmost and `beyond`, so the two never share a group.
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
        """joins: the entry may share the group of `above`, which then is used just now."""
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
        """Use this entry and every live one above it."""
        group = _led_by(self)
        group.used = max(group.used, at)
        while (up := group.beyond) is not None:
            if not up.group.alive(at):
                group.beyond, group.gapped = up.group.beyond, True
            elif up.group.ttl == group.ttl and not group.gapped:
                _take(up, group)
            else:
                group = _led_by(up)
                group.used = max(group.used, at)

    def use_alone(self, at: float) -> None:
        """Use this entry and no other. Only for entries that never joined a group."""
        self.group.used = max(self.group.used, at)


def _led_by(entry: CacheEntry) -> Group:
    """The group with this entry as its tip, split off if need be."""
    left = entry.group
    if left.tip is entry:
        return left
    group = Group(left.used, left.ttl, entry, None)
    _take(entry, group)
    return group


def _take(entry: CacheEntry, group: Group) -> None:
    """Move an entry, and all above it in its group, to the top of another group that ends right below it."""
    left = entry.group
    moving: CacheEntry | None = entry
    while moving is not None and moving.group is left:
        moving.group = group
        moving = moving.above
    group.beyond, group.gapped = left.beyond, left.gapped
    left.beyond, left.gapped = entry, False
