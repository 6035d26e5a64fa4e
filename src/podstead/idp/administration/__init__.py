"""What operators do with accounts and pods, in the console and by commands."""
