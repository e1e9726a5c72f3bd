"""What touches the samples once: validation, whitening, moments."""
