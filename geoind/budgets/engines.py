"""Connections to SQLite and PostgreSQL, with settings that make a returned commit durable."""

import math
import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event

from geoind.errors import InvalidInputError, LedgerError

__all__ = ["keep_private", "open_engine", "sqlite_file", "sqlite_files"]

PRIVATE = 0o600


def open_engine(url: str, timeout: float) -> Engine:
    """Return the engine of a URL; a missing SQLite file is created with mode 0600."""
    try:
        parsed = sqlalchemy.make_url(url)
    except (sqlalchemy.exc.ArgumentError, AttributeError) as error:
        # A URL may hold a password, so it is not quoted.
        raise InvalidInputError("url must be a database URL such as sqlite:///budgets.db") from error
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return _sqlite_engine(parsed, timeout)
    if kind == "postgresql":
        return _postgresql_engine(parsed, timeout)
    raise InvalidInputError(f"url must name sqlite or postgresql, got {kind!r}")


def sqlite_file(url: URL) -> str | None:
    """Return the path of a SQLite database, or None for one in memory."""
    name = url.database or ""
    path = unquote(urlsplit(name).path) if name.startswith("file:") else name
    in_memory = "mode=memory" in name or url.query.get("mode") == "memory" or url.query.get("vfs") == "memdb"
    return None if in_memory or path in ("", ":memory:") else path


def sqlite_files(url: URL) -> tuple[Path, ...]:
    """Return the files of a SQLite database and its log; none for one in memory."""
    path = sqlite_file(url)
    return () if path is None else tuple(Path(f"{path}{end}") for end in ("", "-wal", "-shm"))


def keep_private(url: URL) -> None:
    """Set the mode of a SQLite database and its log to 0600."""
    for file in sqlite_files(url):
        try:
            with suppress(FileNotFoundError):
                file.chmod(PRIVATE)
        except OSError as error:
            raise LedgerError(f"the mode of the ledger's file cannot be set to 0600: {error.strerror}") from error


def _sqlite_engine(url: URL, timeout: float) -> Engine:
    path = sqlite_file(url)
    if path is not None:
        try:
            # SQLite gives its log the mode of the file.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE))
        except OSError as error:
            raise LedgerError(f"unable to open the ledger's file: {error.strerror}") from error
    # A database in memory belongs to its connection, so there is exactly one, which threads share.
    size = {"pool_size": 1, "max_overflow": 0} if path is None else {}
    engine = sqlalchemy.create_engine(
        url,
        poolclass=sqlalchemy.QueuePool,
        pool_timeout=timeout,
        hide_parameters=True,
        connect_args={"timeout": timeout, "check_same_thread": False},
        **size,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # no BEGIN of sqlite3's own
        with closing(connection.cursor()) as cursor:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
                cursor.execute("PRAGMA journal_mode=WAL")
            # FULL: a commit is on the disk when it returns. NORMAL would lose the last ones to a power cut.
            cursor.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # IMMEDIATE: a transaction that reads first could only fail after another one has written.
        writes = connection.get_execution_options()["geoind_writes"]
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql_engine(url: URL, timeout: float) -> Engine:
    engine = sqlalchemy.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_timeout=timeout,
        pool_pre_ping=True,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        connect_args={
            "connect_timeout": max(2, math.ceil(timeout)),
            "tcp_user_timeout": math.ceil(1000 * timeout),
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET synchronous_commit = on")
            cursor.execute(f"SET lock_timeout = {math.ceil(1000 * timeout)}")
        connection.commit()

    return engine
