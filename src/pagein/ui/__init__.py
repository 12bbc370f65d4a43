"""Output for people: tables in a terminal and a page in a browser, from plain values."""
