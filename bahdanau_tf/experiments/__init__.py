"""Systems that are trained to be compared: which, on what, for how long."""
