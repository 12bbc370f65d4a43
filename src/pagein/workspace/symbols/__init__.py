"""The symbols of a workspace: found with tree-sitter, found again by name, and shown as a map."""
