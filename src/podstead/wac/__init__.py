"""Web Access Control: decides which agents may do what with a resource."""
