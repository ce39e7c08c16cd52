"""Durability without PySpark: the checkpoint of a stream, its batches, their replay."""
