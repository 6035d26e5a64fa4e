"""The pages on which people see, change and understand who has access."""
