"""The engine: one operator, its state, its threads; batches in, batches out."""
