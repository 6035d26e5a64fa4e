"""The pages about files and folders."""
