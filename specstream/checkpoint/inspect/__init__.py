"""Reading a checkpoint afterwards: what is in it, its state, a batch replayed, a rollback."""
