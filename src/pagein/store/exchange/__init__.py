"""Export and import of a store, as JSON lines and in the format of Pi-RLM."""
