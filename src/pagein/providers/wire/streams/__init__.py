"""Model answers: events of streams, what was read of an answer, the turns in it, and streams merged into one."""
