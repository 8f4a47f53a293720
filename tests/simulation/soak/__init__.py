"""Days of steady work in virtual time: very many compactions lose nothing, and nothing grows."""
