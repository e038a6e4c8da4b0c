"""Systems that are trained and compared: which, on what, with what results."""
