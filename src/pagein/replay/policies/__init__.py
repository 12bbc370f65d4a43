"""The policies compared by a replay, and the ledger that bills each call under one of them."""
