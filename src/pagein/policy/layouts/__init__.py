"""Layouts: the order of a prompt's blocks, and their cache breakpoints. Each layout is a module; the port is `ports.layouts`."""
