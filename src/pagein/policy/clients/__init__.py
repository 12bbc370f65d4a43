"""What the tools of known clients mean: which files they read, write and edit, and how their results show that."""
