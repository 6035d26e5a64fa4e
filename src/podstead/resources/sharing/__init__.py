"""Shows who has access to a resource, previews changes of its rules, and makes them."""
