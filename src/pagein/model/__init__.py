"""Values: frozen, without clock, file or network. Everything else in pagein talks in these."""
