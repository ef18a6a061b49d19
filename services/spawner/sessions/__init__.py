"""Keeping sessions as people want them."""
