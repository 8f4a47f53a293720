"""Tasks that work on feeds are started while feeds are."""
