"""The texts of messages that are sent to people."""
