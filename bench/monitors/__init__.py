"""Published properties, their traces, and other monitors that check them."""
