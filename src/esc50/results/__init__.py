"""What runs leave behind and what can be said about it."""
