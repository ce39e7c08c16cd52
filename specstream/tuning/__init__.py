"""What speculation brings on a user's own data: ``specstream tune`` and ``specstream bench``.

Everything is measured in interleaved rounds of one process, because two runs one after the other
differ by what else the machine does. ``stream`` reads the data, ``contest`` runs the rounds,
``candidates`` and ``search`` find a setting, ``rivals`` are the ways to do without speculation, and
``table``, ``picture`` and ``commands`` are what the user sees. The model of machines with more
cores is in :mod:`specstream.model`.
"""
