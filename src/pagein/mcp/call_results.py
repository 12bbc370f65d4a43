"""The result of a call in the protocol's own form."""

from typing import Any

from pagein.engine.reads.session_reads import ReadResult


def result_fields(result: ReadResult, *, has_structure: bool = False) -> dict[str, Any]:
    """Return the fields of the protocol's result.

    has_structure: whether it has a structured form beside the text. Known clients show their models that form instead.
    """
    content: list[dict[str, Any]] = [{"type": "text", "text": result.text}]
    content += [{"type": "image", "data": one.data or "", "mimeType": one.media_type} for one in result.images]
    fields: dict[str, Any] = {"content": content, "isError": result.is_error}
    if has_structure:
        fields["structuredContent"] = {"text": result.text, **result.details}
    return fields
