"""The last writer of each line of a file, derived from the known texts of the file."""
