"""What iterates over the samples."""
