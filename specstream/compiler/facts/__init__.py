"""What is known of each expression before code is made of it.

Its type, what it depends on, whether it may be None, where its value comes from, what it changes.
"""
