"""Full-text search over the names and contents of documents."""
