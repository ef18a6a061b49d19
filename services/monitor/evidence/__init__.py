"""The readers: each looks at one source, and gives one piece of evidence or none."""
