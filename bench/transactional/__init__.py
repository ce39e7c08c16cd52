"""Benchmarks of transactional stream processing: shared state, many keys an event, an order."""
