"""The pages about a person, their account and their pod."""
