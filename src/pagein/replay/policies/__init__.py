"""The policies compared by a replay, and the ledger of each."""
