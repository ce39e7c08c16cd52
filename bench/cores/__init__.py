"""The scheduler on machines of more cores than there are: its own C code on a virtual one."""
