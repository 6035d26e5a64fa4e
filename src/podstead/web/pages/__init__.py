"""What all pages have in common: requests, the guard, cookies, texts and rendering."""
