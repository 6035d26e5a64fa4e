"""The pages about who has access to what."""
