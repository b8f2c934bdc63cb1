"""Keys and tokens by scope: kept in private, handed out only to what needs them."""
