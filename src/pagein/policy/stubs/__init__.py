"""The texts that stand in the window for content that left it."""
