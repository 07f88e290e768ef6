"""Sequential programs over regions, run in parallel."""
