"""The result of a call in the protocol's own form."""

from typing import Any

from pagein.engine.reads.session_reads import ReadResult


def result_fields(result: ReadResult, *, has_structure: bool = False) -> dict[str, Any]:
    """Return the fields of the protocol's result.

    has_structure: whether it has a structured form beside the text. Known clients show their models that form instead.
    """
    text = result.text.encode("utf-8", "replace").decode()
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    content += [{"type": "image", "data": one.data or "", "mimeType": one.media_type} for one in result.images]
    fields: dict[str, Any] = {"content": content, "isError": result.is_error}
    if has_structure:
        fields["structuredContent"] = {"text": text, **result.details}
    return fields
