"""Lakebed: tables of rows sorted by key, kept in object storage by jobs instead of servers."""
