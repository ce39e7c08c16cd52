"""From one plain Python function to the code that runs it.

``source`` rewrites it twice, ``oracle`` and ``numbers`` run one form under Python, ``types``,
``access``, ``memory`` and ``arithmetic`` give the other its meaning under Numba, ``variants``
compiles it and ``cache`` keeps the machine code.
"""
