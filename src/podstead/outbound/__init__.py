"""The only way out of the server: guarded, bounded fetches of foreign documents."""
