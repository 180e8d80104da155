"""Optimal mechanisms: two linear programs, solved exactly."""
