"""One small fake per port, for tests that need no real one.

A fake is a subclass of what it stands for, so mypy holds it to the same signatures. The journal is never a fake: it is
real SQLite in a temporary directory. `turns` runs turns as the runtime does, `peers` plays the other services.
"""
