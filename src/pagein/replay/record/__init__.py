"""A recorded session as plain values."""
