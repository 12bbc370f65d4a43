"""Which line of a file was last written by whom, derived from the texts that are known of the file."""
