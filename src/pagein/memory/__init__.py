"""Memory: everything that agents said, called and touched, as objects made from the journals of their sessions."""
