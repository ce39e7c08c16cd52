"""What every operator, method and function of the language means in native code."""
