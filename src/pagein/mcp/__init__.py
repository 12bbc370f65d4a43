"""The server of tools for clients that speak the Model Context Protocol (MCP)."""
