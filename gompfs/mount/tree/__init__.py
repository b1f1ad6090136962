"""What a mount shows: its nodes, and the operations on them, of one or several archives."""
