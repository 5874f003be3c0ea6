// The decision cycle.
