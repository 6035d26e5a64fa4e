"""What connects the layers below to this machine: clock, keys, git, hashing, foreign servers."""
