"""Sessions that last: started, looked at, spoken to, ended."""
