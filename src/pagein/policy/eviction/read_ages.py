"""How long an answer to a read stays: by the rows of the residency table that hold for reads of files.

An edit quotes text that a read showed, and does so while the file is being worked on. Measured on recorded sessions
(docs/residency.md): nearly every quote comes within three calls of the last access to the file, or from a file that the
current task has read and not edited yet.
"""

from dataclasses import dataclass

from pagein.policy.eviction.residency_rules import ResidencyRules
from pagein.policy.eviction.session_work import SessionWork
from pagein.policy.eviction.waiting_residents import rule_holds


@dataclass(frozen=True, slots=True)
class ReadAges:
    """Decides whether a read of a file still stays.

    call: the next model call. session: what the session has done.
    """

    rules: ResidencyRules
    call: int
    session: SessionWork

    def keeps(self, born: int, *, touched: int, edited: int) -> bool:
        """Return whether a read stays, by its first call and the file's last access and edit."""
        idle = self.call - touched
        return not any(
            row.wait is not None
            and row.limit is None
            and idle >= row.wait
            and rule_holds(row, born, edited=edited, work=self.session)
            for row in self.rules.of("file read")
        )
