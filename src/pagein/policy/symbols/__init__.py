"""Decisions about symbols: the definition of a name, the files in front of a map, and the lines of a file in the map."""
