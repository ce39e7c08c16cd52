"""Streams in Spark, and processes that run them until they are killed."""
