"""All requests from this server to others: guarded, and limited in size, time and number."""
