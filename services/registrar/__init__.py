"""The registrar: the one writer of `registry.yaml` and of the retained agent states."""
