"""Ids, errors, paths, configuration, files, child processes: what every other room stands on."""
