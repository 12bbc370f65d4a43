"""Which results leave the window, when, and which must stay."""
