"""Detection and removal of text unfit for the store (law 9): excluded files, keys, erased texts."""
