"""The reconciler: compares what is recorded with what is, and says each difference once. It changes nothing itself."""
