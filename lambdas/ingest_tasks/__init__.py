"""Tasks that take users' files in are started while their messages wait."""
