"""Pages about containers and documents."""
