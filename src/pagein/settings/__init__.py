"""All that can be set: the keys, the layers that give them values, and where those are read.

defaults < the user's file < the workspace's file < the environment < what a caller or a command line says.
"""
