"""Hostile texts in SQL: made by a grammar, and by mutations of good and bad ones."""

import random

TABLES = ("trips", "cities", "tripz", "lakebed.files", "lakebed.secrets", "main.trips", "this")
FILES = (
    "CANARY",
    "CANARY/x.csv",
    "CANARY/etc/passwd",
    "x.csv",
    "s3://b/x.parquet",
    "https://h/x.csv",
    "~/.netrc",
)
PIPES = ("x.csv", "etc/passwd", "s3:/b/x.parquet", "https:/h/x.csv", ".netrc")
"""Where these lie for a process whose working folder and home are the canary: an engine that takes
an address for a path finds one, too."""
READERS = (
    "read_csv",
    "read_csv_auto",
    "read_parquet",
    "parquet_scan",
    "parquet_metadata",
    "read_json",
    "read_text",
    "read_blob",
    "glob",
    "sniff_csv",
    "sqlite_scan",
    "arrow_scan",
    "query",
    "query_table",
    "duckdb_settings",
    "duckdb_secrets",
    "pragma_version",
    "range",
    "unnest",
)
FUNCTIONS = (
    "count",
    "sum",
    "getenv",
    "current_setting",
    "getvariable",
    "nextval",
    "repeat",
    "nope",
)
STATEMENTS = (
    "COPY {table} TO '{file}'",
    "COPY {table} FROM '{file}'",
    "COPY ({select}) TO '{file}' (FORMAT parquet)",
    "ATTACH '{file}' AS a",
    "ATTACH '{file}' (TYPE sqlite)",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "INSTALL h FROM '{file}'",
    "LOAD '{file}'",
    "EXPORT DATABASE '{file}'",
    "IMPORT DATABASE '{file}'",
    "CREATE TABLE t AS {select}",
    "CREATE VIEW trips AS {select}",
    "CREATE MACRO m() AS TABLE {select}",
    "CREATE SECRET s (TYPE s3, KEY_ID 'k')",
    "DROP TABLE {table}",
    "INSERT INTO {table} {select}",
    "UPDATE {table} SET id = 1",
    "DELETE FROM {table}",
    "SET enable_external_access = true",
    "SET VARIABLE v = 1",
    "RESET lock_configuration",
    "PRAGMA enable_profiling = 'json'",
    "CALL {reader}('{file}')",
    "PREPARE p AS {select}",
    "EXECUTE p",
    "EXPLAIN ANALYZE {select}",
    "CHECKPOINT",
    "BEGIN",
    "VACUUM",
    "PIVOT {table} ON id",
    "DESCRIBE {table}",
    "SUMMARIZE '{file}'",
    "SHOW ALL TABLES",
)
_LETTERS = "();,'\"\\.*=<>-/$?\x00\n \xe9\u2603\U0001d518"


def hostile_text(rng: random.Random) -> str:
    """Return a text: good or bad SQL, perhaps with something changed."""
    text = _statement(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 3))):
        text = _mutated(rng, text)
    return text


GOOD = (
    "select {a}, {b} from trips where {a} < {n} limit {n}",
    "select count(*), max({a}) from trips group by {b} having count(*) > {n}",
    "with t as (from trips where {a} = {n}) select * from t join trips using ({b})",
    "select * from range({n}) r(x), trips where x = {a}",
    "from lakebed.files select count(*)",
    "select sum({a}) over (order by {b}) from trips union all select {n}",
)
READING = (
    "select * from {reader}('{file}') limit 1",
    "select count(*) from trips, {reader}('{file}') f",
    "with f as (from {reader}('{file}')) select * from f",
    "select (select count(*) from '{file}') from trips limit 1",
    "from {reader}(['{file}', '{file}'])",
)
"""Nothing is wrong with these but that they read a file: what lets them pass is seen."""


def _statement(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(READING).format(reader=rng.choice(READERS), file=rng.choice(FILES))
    if rng.random() < 0.2:
        form = rng.choice(GOOD)
        return form.format(a="id", b=rng.choice(("id", "s")), n=rng.randrange(9))
    if rng.random() < 0.6:
        return _select(rng, 0)
    form = rng.choice(STATEMENTS)
    text = form.format(
        table=rng.choice(TABLES),
        file=rng.choice(FILES),
        reader=rng.choice(READERS),
        select=_select(rng, 1),
    )
    return rng.choice((text, f"select 1; {text}", f"{text}; select 1", f"from ({text}) x"))


def _select(rng: random.Random, depth: int) -> str:
    with_ = ""
    if depth < 2 and rng.random() < 0.2:
        recursive = rng.choice(("", "recursive "))
        name = rng.choice(("t", "trips", "cities"))
        with_ = f"with {recursive}{name} as ({_select(rng, depth + 1)}) "
    where = f" where {_expression(rng, depth)}" if rng.random() < 0.5 else ""
    limit = f" limit {rng.choice((0, 1, 5, -1))}" if rng.random() < 0.4 else ""
    set_ = f" union all {_select(rng, depth + 1)}" if depth < 2 and rng.random() < 0.1 else ""
    return f"{with_}select {_expression(rng, depth)} from {_source(rng, depth)}{where}{limit}{set_}"


def _source(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(TABLES)
    if kind == 1:
        return f"'{rng.choice(FILES)}'"
    if kind == 2:
        return f"{rng.choice(READERS)}('{rng.choice(FILES)}')"
    if kind == 3 and depth < 3:
        return f"({_select(rng, depth + 1)}) s"
    if kind == 4 and depth < 3:
        return f"{_source(rng, depth + 1)} a, {_source(rng, depth + 1)} b"
    return "trips"


def _expression(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(8)
    if kind == 0:
        return "*"
    if kind == 1:
        return f"{rng.choice(FUNCTIONS)}({rng.choice(('id', '1', repr(rng.choice(FILES))))})"
    if kind == 2 and depth < 3:
        return f"({_select(rng, depth + 1)})"
    if kind == 3:
        return (
            f"id {rng.choice(('=', '<', 'like', 'in', 'is'))} {rng.choice(('7', 'null', '(1, 2)'))}"
        )
    if kind == 4:
        return f"exists (from {_source(rng, depth + 1)})" if depth < 3 else "true"
    return rng.choice(("id", "1", "null", "'x'", "count(*)", "columns('.*')", "?", "$a"))


def _mutated(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at] + rng.choice(_LETTERS) + text[at:]
    if kind == 1:
        return text[:at] + text[at + rng.randrange(1, 9) :]
    if kind == 2:
        other = _statement(rng)
        return text[:at] + other[rng.randrange(len(other)) :]
    if kind == 3:
        words = text.split(" ")
        rng.shuffle(words)
        return " ".join(words)
    return (
        text[:at] + rng.choice(("/*", "*/", "--", ";", "'", '"', "$$", "\\", "(" * 50)) + text[at:]
    )
