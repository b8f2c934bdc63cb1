"""Changes to the settings of agent CLIs that can be undone: said as data, planned purely, done as a whole."""
