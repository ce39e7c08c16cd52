"""The experiments of a paper on model checking, with both engines and NuSMV."""
