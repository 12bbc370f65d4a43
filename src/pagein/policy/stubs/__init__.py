"""Stubs, previews and manifests: the texts in place of evicted content."""
