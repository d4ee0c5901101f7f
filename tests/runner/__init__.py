"""Tests of the batch runner."""
