"""From one plain Python function to the code that runs it.

``source`` parses it and ``check`` refuses what could not mean the same everywhere. Two forms are
made of it. ``rewrite_oracle`` makes the one that ``oracle`` and ``numbers`` run under Python.
``rewrite_native`` makes the one for Numba; its meaning is given by one file for each thing that an
operator can do: ``arithmetic``, ``conversions``, ``math_functions``, ``state_fields``, ``views``,
``item_assignment``, ``reductions``, ``iteration``, ``event``, ``emit``, ``delta``, ``boosting``,
``locking``. They write with ``instructions`` and, for the state, ``memory``. ``variants`` compiles
this form by way of ``pipeline``, and ``cache`` keeps the machine code.
"""
