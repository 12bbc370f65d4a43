"""Search over everything stored, and the trigram index below it."""
