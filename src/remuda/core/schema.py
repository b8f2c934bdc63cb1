"""The schema of the shared database, as a list of migrations that SQLite and PostgreSQL both understand.

Times are seconds since the epoch by the database's clock. Documents are JSON as text.
"""

from __future__ import annotations

MIGRATIONS = (
    """
    CREATE TABLE tasks (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        key TEXT UNIQUE,
        prompt TEXT NOT NULL,
        request TEXT NOT NULL,
        agent TEXT,
        tag TEXT,
        priority BIGINT NOT NULL DEFAULT 0,
        created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION,
        not_before DOUBLE PRECISION,
        started_at DOUBLE PRECISION,
        ended_at DOUBLE PRECISION,
        worker TEXT,
        attempts BIGINT NOT NULL DEFAULT 0,
        takeovers BIGINT NOT NULL DEFAULT 0,
        cancel TEXT,
        session TEXT,
        result TEXT,
        error_kind TEXT,
        error TEXT,
        last_seq BIGINT NOT NULL DEFAULT 0,
        revision BIGINT NOT NULL DEFAULT 0
    );
    CREATE INDEX tasks_waiting ON tasks (priority DESC, created_at, id, agent, tag, not_before, expires_at)
        WHERE state = 'queued';
    CREATE INDEX tasks_expiring ON tasks (expires_at) WHERE state = 'queued' AND expires_at IS NOT NULL;
    CREATE INDEX tasks_running ON tasks (worker) WHERE state = 'running';
    CREATE INDEX tasks_ended ON tasks (ended_at) WHERE ended_at IS NOT NULL;
    CREATE TABLE attempts (
        task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        agent TEXT NOT NULL,
        worker TEXT NOT NULL,
        phase TEXT NOT NULL,
        session TEXT,
        runtime_session TEXT,
        began_at DOUBLE PRECISION NOT NULL,
        ended_at DOUBLE PRECISION,
        outcome TEXT,
        PRIMARY KEY (task, number)
    );
    CREATE TABLE task_events (
        task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
        seq BIGINT NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (task, seq)
    );
    CREATE TABLE workers (
        id TEXT PRIMARY KEY,
        host TEXT NOT NULL,
        process TEXT NOT NULL,
        agents TEXT NOT NULL,
        tags TEXT NOT NULL,
        slots BIGINT NOT NULL,
        wake TEXT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL,
        seen_at DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE cursors (
        name TEXT PRIMARY KEY,
        position BIGINT NOT NULL
    );
    CREATE TABLE cooldowns (
        agent TEXT PRIMARY KEY,
        until DOUBLE PRECISION NOT NULL,
        kind TEXT NOT NULL,
        reason TEXT NOT NULL
    );
    CREATE TABLE buckets (
        agent TEXT PRIMARY KEY,
        tokens DOUBLE PRECISION NOT NULL,
        filled_at DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE slots (
        agent TEXT NOT NULL,
        holder TEXT NOT NULL,
        host TEXT NOT NULL,
        process TEXT NOT NULL,
        asked_at DOUBLE PRECISION NOT NULL,
        taken_at DOUBLE PRECISION,
        seen_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (agent, holder)
    );
    CREATE TABLE peers (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        agent TEXT NOT NULL,
        runtime TEXT NOT NULL,
        host TEXT NOT NULL,
        cwd TEXT NOT NULL,
        session TEXT,
        runtime_session TEXT,
        pane TEXT,
        process TEXT,
        role TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL,
        source TEXT NOT NULL,
        auto_spawned BIGINT NOT NULL DEFAULT 0,
        close_at DOUBLE PRECISION,
        registered_at DOUBLE PRECISION NOT NULL,
        seen_at DOUBLE PRECISION NOT NULL
    );
    CREATE INDEX peers_by_runtime ON peers (runtime, state);
    CREATE TABLE inbox (
        id TEXT PRIMARY KEY,
        peer TEXT NOT NULL REFERENCES peers (id) ON DELETE CASCADE,
        sender TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT,
        task TEXT,
        reply_to TEXT,
        key TEXT,
        state TEXT NOT NULL,
        leased_until DOUBLE PRECISION,
        deliveries BIGINT NOT NULL DEFAULT 0,
        channel TEXT NOT NULL DEFAULT '',
        proof TEXT NOT NULL DEFAULT '',
        created_at DOUBLE PRECISION NOT NULL,
        moved_at DOUBLE PRECISION NOT NULL,
        UNIQUE (peer, key)
    );
    CREATE INDEX inbox_open ON inbox (peer, id) WHERE state IN ('queued', 'leased');
    CREATE INDEX inbox_replies ON inbox (reply_to) WHERE reply_to IS NOT NULL
    """,
)
