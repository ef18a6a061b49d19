"""The reconciler: compares the records with the world and reports each drift once. It changes nothing."""
