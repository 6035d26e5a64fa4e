"""What connects the layers below to this machine: clock, keys, hashing, foreign servers."""
