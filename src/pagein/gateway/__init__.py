"""The gateway: an HTTP server between an agent and its model provider (docs/gateway.md).

Modules of this package load aiohttp where they serve; what the command line asks first (settings, the switch) does not.
"""
