"""The engine: sessions with their journals, states, rendered requests and recalls."""
