"""Check, repair, garbage collection and salvage of a store."""
