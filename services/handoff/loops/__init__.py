"""The decisions about a loop: one pure module each."""
