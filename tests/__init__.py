"""Tests, in folders like the packages they test."""
