"""What speculation brings on a user's own data: ``specstream tune`` and ``specstream bench``.

Everything is measured in interleaved rounds of one process, because two runs one after the other
differ by what else the machine does. ``stream`` reads the data, ``contest`` runs the rounds,
``candidates`` and ``search`` find a setting, ``rivals`` are the ways to do without speculation, and
``table`` and ``picture`` are what the user sees. What machines
with more cores would bring is forecast in :mod:`specstream.tuning.forecast`.
"""
