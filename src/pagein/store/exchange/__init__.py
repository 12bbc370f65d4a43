"""Export and import: a store's content as lines of JSON, and as Pi-RLM keeps it."""
