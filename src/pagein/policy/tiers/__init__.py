"""Stability tiers: which parts of an assembled prompt are stable enough to stand in front."""
