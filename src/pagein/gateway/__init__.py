"""The gateway: an HTTP server between an agent and its model provider (docs/gateway.md).

Serving modules of this package load aiohttp; the modules used first by the command line (settings, the kill switch) do not.
"""
