"""What people need besides their passwords: codes of authenticator apps, and recovery codes."""
