"""The guidance for a model about linked Markdown notes, for later sessions to find."""

from typing import Final

NOTES: Final = (
    "Keep notes: what a later session needs to know (a decision, a cause, how a thing works) goes into a Markdown file, one "
    "subject in a few lines, in notes/ or where the project has its notes, with tags in the frontmatter and [[name]] links to "
    "other notes. First look for a note on the subject, and correct that one."
)
"""The guidance. The same bytes in every request, so that it is read from the cache."""
