"""What every store of process reports promises."""
