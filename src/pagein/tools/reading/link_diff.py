"""A symbolic link against an earlier state: a diff of the targets, as stored by git."""

from typing import Any

from pagein.engine.reads.session_reads import ReadResult
from pagein.model.read_contract import ReadPlace
from pagein.policy.guards.judgement import ReadAsk
from pagein.tools.reading.mode_answers import ModeAnswer, ReadCall, head_text, served_facts
from pagein.tools.reading.read_problems import ReadRefusal, next_read, short_name
from pagein.tools.reading.targets import NamedFile
from pagein.workspace.git_versions import GitProblem, GitVersion, git_version
from pagein.workspace.target_state import LinkPlace, root_of, shown_path


def read_link(call: ReadCall, named: NamedFile, link: LinkPlace) -> ModeAnswer:
    """Answer a call with mode=diff_preview for a link. Raises ReadRefusal.

    named: the file to which the link leads.
    """
    against = call.asked.against
    try:
        before = git_version(link.path, against)
    except GitProblem as problem:
        raise ReadRefusal(problem.code, str(problem)) from problem
    verdict, room = call.judge(ReadAsk("diff_preview", call.asked.target, named.located.key))
    shown = shown_path(link.path, root_of(call.session.folder or "."))
    said = f"{short_name(shown)} is a link to {short_name(link.text)}{_compared(before, link)}"
    more: dict[str, Any] = {"against": against, "base": before.state, "link": link.text, "hunks": 0}
    if named.state.name == "file":
        said += f"\nCompare {short_name(named.shown)} for the text behind it."
        more["next_calls"] = [next_read("diff_preview", named.shown, against=against)]
    text = head_text(verdict, said, room)
    return ModeAnswer(ReadResult(text), ReadPlace(shown), verdict, served_facts(call, named, text), more=more)


def _compared(before: GitVersion, link: LinkPlace) -> str:
    """Return how a link differs from a state of git, in words."""
    if before.content is None or before.renamed:
        return f", and new: {before.state} has nothing there"
    if not before.is_link:
        return f"; in {before.state} it is a file of {len(before.content)} bytes"
    led = before.content.decode(errors="replace")
    return f", as in {before.state}" if led == link.text else f"; in {before.state} it leads to {short_name(led)}"
