"""Connections to child models: by providers' own libraries, and behind a gateway by its upstream."""
