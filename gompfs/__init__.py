"""gompfs: mount Gompresso archives as directories."""
