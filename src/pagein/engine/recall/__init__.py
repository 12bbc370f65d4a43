"""How content that left the window is brought back, and how files enter the store beside it."""
