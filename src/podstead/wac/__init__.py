"""Web Access Control: who may do what with which resource, decided in one place."""
