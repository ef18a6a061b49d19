"""Typing into sessions."""
