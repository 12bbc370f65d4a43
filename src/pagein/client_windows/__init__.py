"""What the window of a coding agent shows, as told by the transcript that the agent itself writes."""
