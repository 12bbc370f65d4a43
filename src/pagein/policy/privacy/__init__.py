"""Detection and removal of text unfit for the store."""
