"""Engines watched from outside: by Prometheus, and as a live table.

Both look at ``engine.stats`` and stop nobody. What Spark's own progress shows is told by
``specstream/spark/listener.py``.
"""
