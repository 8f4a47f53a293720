"""The deployed templates on one machine: an emulator for the stores, processes for what runs."""
