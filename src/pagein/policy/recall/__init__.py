"""Selection of a part of a text for the recall tools."""
