"""Plain NumPy implementations of the example applications, written from the equations and used only as test oracles."""
