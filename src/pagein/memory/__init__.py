"""Memory: the words, calls and files of agents, as objects made from the journals of sessions."""
