"""Files of an agent's workspace: naming, reading and following."""
