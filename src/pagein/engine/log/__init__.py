"""What happened in a session: the journal, the states folded from it, and how both are stored."""
