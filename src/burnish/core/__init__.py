"""Shared by every system: errors, evidence, budgets, progress, files. Imports nothing else of burnish."""
