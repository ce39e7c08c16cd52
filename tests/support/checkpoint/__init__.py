"""Streams with a checkpoint, and files of one that somebody has changed."""
