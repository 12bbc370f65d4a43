"""Guards of a session's reads: budgets, relevance, aggregation and metrics, folded from the journal."""
