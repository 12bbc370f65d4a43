"""Host-neutral tools for models: name, JSON schema, handler and result text."""
