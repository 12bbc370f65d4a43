"""A model's answer on its way to the client: read, merged, continued."""
