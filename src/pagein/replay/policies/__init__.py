"""The policies that a replay compares, and the ledger of each."""
