"""Pages about the person: their profile, activity, storage and security."""
