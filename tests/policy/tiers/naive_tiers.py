"""The tiers as the specification's words have them, written a second time: slow, mutable, and without any table.

Shares nothing with the product. Each method quotes the sentence that it carries out.
"""

from collections.abc import Collection, Mapping

ENTRY = {"L3": 3, "L2": 6, "L1": 9, "L0": 12}
ABOVE = {"L3": "L2", "L2": "L1", "L1": "L0"}


class NaiveTiers:
    def __init__(self, target: float) -> None:
        self.target = target
        self.tier: dict[str, str] = {}
        self.n: dict[str, int] = {}
        self.hash: dict[str, str] = {}
        self.was_active: list[str] = []
        self.was_listed: set[str] = set()

    def request(
        self,
        files: Mapping[str, tuple[str, float]],
        selected: Collection[str],
        symbols: Mapping[str, tuple[str, float]],
        history: list[tuple[str, float]],
        modified: Collection[str],
    ) -> None:
        """One request. Contents are given with their sizes."""
        content: dict[str, tuple[str, float]] = {}
        content.update(files)
        content.update({f"symbol:{path}": entry for path, entry in symbols.items()})
        # The words: When a file is modified, both the file and its symbol: entry are marked as modified
        edited = set(modified) | {f"symbol:{path}" for path in modified}
        active: list[str] = []
        for key in content:
            path = key.replace("symbol:", "", 1)
            changed = key in edited or (key in self.hash and self.hash[key] != content[key][0])
            # The words: Files and symbol entries with N >= 3 are always graduated
            if (path in selected and (self.n.get(key, 0) < 3 or changed)) or (key in self.n and changed):
                active.append(key)
        # The words: has_file_symbol_ripple = (last_active_items != current_active_items)
        ripple = set(active) != self.was_listed
        self.was_listed = set(active)
        for number, (text, size) in enumerate(history):
            content[f"history:{number}"] = (text, size)
        leaving = self.leaving_history(content, ripple=ripple)
        for number in range(len(history)):
            key = f"history:{number}"
            if key not in leaving and self.tier.get(key, "active") == "active":
                active.append(key)
        self.listed(active, content, edited)

    def leaving_history(self, content: Mapping[str, tuple[str, float]], *, ripple: bool) -> set[str]:
        if self.target == 0:  # The words: Never (if cache_target_tokens = 0)
            return set()
        eligible = [
            key
            for key in content
            if key.startswith("history:") and self.n.get(key, 0) >= 3 and self.tier.get(key) == "active"
        ]
        if ripple:  # The words: eligible history graduates for free
            return set(eligible)
        # The words: If total eligible history tokens exceed cache_target_tokens, the oldest eligible messages graduate
        if sum(content[key][1] for key in eligible) <= self.target:
            return set()
        kept = 0.0
        while eligible and kept + content[eligible[-1]][1] <= self.target:
            kept += content[eligible.pop()][1]
        return set(eligible)

    def listed(self, active: list[str], content: Mapping[str, tuple[str, float]], edited: set[str]) -> None:
        for key in active:
            if key not in self.n:  # The words: New item appears in active context: N = 0
                self.tier[key], self.n[key] = "active", 0
            elif self.hash[key] != content[key][0] or key in edited:
                # The words: Item content changes: N resets to 0, demotes to active
                self.tier[key], self.n[key] = "active", 0
            else:  # The words: Item unchanged in active context: N increments by 1 each request
                self.n[key] += 1
            self.hash[key] = content[key][0]
        # The words: They must leave the active list to graduate
        entering = [key for key in self.was_active if key not in active and self.tier.get(key) == "active"]
        self.was_active = active
        tier = "L3"
        while entering:
            veterans = [key for key in self.tier if self.tier[key] == tier and key not in entering]
            for key in entering:  # The words: Items entering a tier get that tier's entry_n value
                self.tier[key], self.n[key] = tier, ENTRY[tier]
            if self.target:
                veterans = self.past_the_threshold(entering, veterans, content)
            for key in veterans:  # The words: Veterans (items already in the tier) get N incremented by 1
                self.n[key] += 1
            if tier == "L0":
                break
            # The words: If a veteran's N reaches the tier's promotion_threshold, it promotes to the next tier
            entering = [key for key in veterans if self.n[key] >= ENTRY[ABOVE[tier]]]
            tier = ABOVE[tier]

    def past_the_threshold(
        self, entering: list[str], veterans: list[str], content: Mapping[str, tuple[str, float]]
    ) -> list[str]:
        """ "Veterans below the token threshold anchor the tier (no N increment)" """
        total = sum(content[key][1] if key in content else 0.0 for key in entering)
        free: list[str] = []
        for key in sorted(veterans, key=self.n.__getitem__):  # The words: Sort veterans by N ascending
            if total < self.target:
                total += content[key][1] if key in content else 0.0
            else:
                free.append(key)
        return [key for key in veterans if key in free]
