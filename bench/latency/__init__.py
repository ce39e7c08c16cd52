"""Latency: what a call with one row takes, and how long an event waits for its row under load."""
