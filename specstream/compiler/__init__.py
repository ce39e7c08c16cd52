"""From one plain Python function to the code that runs it.

``driver`` leads through it: ``frontend`` reads the function, ``facts`` finds out what is known of
its expressions, ``staging`` takes out what Python can compute before, and two forms are made of the
rest. ``oracle`` makes the one that runs under Python, on ``objects``; ``lowering`` makes the one
for Numba, whose calls ``library`` gives their meaning, by way of ``backend``. What both agree on is
``language``. ``entries`` compiles loops over events, and ``cache`` keeps the machine code.
"""
