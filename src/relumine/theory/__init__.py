"""What can and cannot be learned."""
