"""One module per paper: compute to JSON; plotting reads only the JSON."""
