"""Running a stream of batches: each one is run, recorded, and delivered to the sinks.

``batch_runner`` is the way of a batch; ``checkpoint`` writes what it leaves.
"""
