"""Where bytes are kept so that nothing that left a window is lost."""
