"""The prompt of each recorded call: its blocks, their sizes, and the blocks the call needed."""
