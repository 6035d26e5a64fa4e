"""Access rules as people see and change them: who has access, why, and what an edit changes."""
