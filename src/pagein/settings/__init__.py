"""Settings: the keys, the layers with their values, and the files and variables that pagein reads.

defaults < the user's file < the workspace's file < the environment < values given by a caller or a command line.
"""
