"""What an operator costs inside Spark: specstream, the bare loop, and Spark's own two ways.

All get the same rows out of the same files, in the same Spark session, and run the same compiled
function. ``python -m bench spark``.
"""
