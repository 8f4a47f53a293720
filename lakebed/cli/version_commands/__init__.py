"""Commands about versions of tables: tags, and the changes from one to the next."""
