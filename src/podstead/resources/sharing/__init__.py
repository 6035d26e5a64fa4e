"""Who has access to a resource, what a change of its rules would do, and making that change."""
