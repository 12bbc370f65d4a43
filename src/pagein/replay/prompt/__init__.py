"""The prompt of each recorded call: its blocks, their sizes, and what the call needed of them."""
