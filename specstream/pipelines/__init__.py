"""Pipelines: graphs of operators, run phase by phase."""
