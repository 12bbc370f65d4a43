"""Tools for models, host-neutral: a name, a JSON schema, a handler, and the text of its result."""
