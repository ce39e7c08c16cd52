"""Display: how objects show themselves, as text and in notebooks."""
