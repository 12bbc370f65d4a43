"""The journal of a session, the states folded from its entries, and the persistence of both."""
