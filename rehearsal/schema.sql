CREATE TABLE IF NOT EXISTS account (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    login TEXT NOT NULL UNIQUE COLLATE NOCASE,
    type TEXT NOT NULL                       -- User | Organization | Bot
);
CREATE TABLE IF NOT EXISTS repository (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL COLLATE NOCASE,
    name TEXT NOT NULL COLLATE NOCASE,
    private INTEGER NOT NULL,
    default_branch TEXT NOT NULL,
    parent INTEGER REFERENCES repository,    -- what this one was forked from
    merge_methods TEXT NOT NULL,             -- JSON list out of merge, squash, rebase
    created_at TEXT NOT NULL,
    pushed_at TEXT NOT NULL,
    last_number INTEGER NOT NULL DEFAULT 0,  -- issues and pull requests share their numbers
    UNIQUE (owner, name)
);
CREATE TABLE IF NOT EXISTS branch (          -- as last seen: the difference to git is what was pushed
    repository INTEGER NOT NULL REFERENCES repository,
    name TEXT NOT NULL,
    sha TEXT NOT NULL,
    PRIMARY KEY (repository, name)
);
CREATE TABLE IF NOT EXISTS protection (
    repository INTEGER NOT NULL REFERENCES repository,
    branch TEXT NOT NULL,
    checks TEXT NOT NULL,                    -- JSON list of contexts that must have succeeded
    reviews INTEGER NOT NULL,                -- approvals that a merge needs
    PRIMARY KEY (repository, branch)
);
CREATE TABLE IF NOT EXISTS collaborator (
    repository INTEGER NOT NULL REFERENCES repository,
    login TEXT NOT NULL COLLATE NOCASE,
    permission TEXT NOT NULL,                -- read | write | admin
    PRIMARY KEY (repository, login)
);
CREATE TABLE IF NOT EXISTS app (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    slug TEXT NOT NULL UNIQUE,
    client_id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    public_key TEXT NOT NULL,
    permissions TEXT NOT NULL,               -- JSON: permission -> read | write
    events TEXT NOT NULL,                    -- JSON list
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS installation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    app INTEGER NOT NULL REFERENCES app,
    account TEXT NOT NULL COLLATE NOCASE,
    created_at TEXT NOT NULL,
    suspended_at TEXT,
    UNIQUE (app, account)
);
CREATE TABLE IF NOT EXISTS installed (
    installation INTEGER NOT NULL REFERENCES installation ON DELETE CASCADE,
    repository INTEGER NOT NULL REFERENCES repository,
    PRIMARY KEY (installation, repository)
);
CREATE TABLE IF NOT EXISTS token (
    digest TEXT PRIMARY KEY,                 -- SHA-256: the token itself is kept nowhere
    login TEXT NOT NULL COLLATE NOCASE,
    installation INTEGER REFERENCES installation ON DELETE CASCADE,
    repositories TEXT,                       -- JSON list of ids; NULL is all that the holder reaches
    permissions TEXT,                        -- JSON; NULL is all that the holder may
    expires_at REAL                          -- seconds since the epoch; NULL is never
);
CREATE TABLE IF NOT EXISTS issue (           -- every pull request is an issue too
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repository,
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT,
    state TEXT NOT NULL,                     -- open | closed
    author TEXT NOT NULL,
    labels TEXT NOT NULL DEFAULT '[]',
    assignees TEXT NOT NULL DEFAULT '[]',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    closed_at TEXT,
    UNIQUE (repository, number)
);
CREATE TABLE IF NOT EXISTS pull (
    issue INTEGER PRIMARY KEY REFERENCES issue,
    head_repository INTEGER NOT NULL REFERENCES repository,
    head_ref TEXT NOT NULL,
    head_sha TEXT NOT NULL,
    base_ref TEXT NOT NULL,
    base_sha TEXT NOT NULL,
    draft INTEGER NOT NULL,
    reviewers TEXT NOT NULL DEFAULT '[]',    -- JSON list of logins that were asked
    landing TEXT,                            -- the commit a merge was about to put on the base
    merge_commit_sha TEXT,
    merged_at TEXT,
    merged_by TEXT
);
CREATE TABLE IF NOT EXISTS comparison (      -- what git said about two commits never changes
    repository INTEGER NOT NULL REFERENCES repository,
    base TEXT NOT NULL,
    head TEXT NOT NULL,
    facts TEXT NOT NULL,
    PRIMARY KEY (repository, base, head)
);
CREATE TABLE IF NOT EXISTS comment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    issue INTEGER NOT NULL REFERENCES issue,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS review (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pull INTEGER NOT NULL REFERENCES pull,
    author TEXT NOT NULL,
    state TEXT NOT NULL,                     -- APPROVED | CHANGES_REQUESTED | COMMENTED | DISMISSED
    body TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    submitted_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS review_comment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pull INTEGER NOT NULL REFERENCES pull,
    review INTEGER REFERENCES review,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER,
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS check_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repository,
    head_sha TEXT NOT NULL,
    name TEXT NOT NULL,
    app INTEGER REFERENCES app,
    status TEXT NOT NULL,
    conclusion TEXT,
    output TEXT NOT NULL,                    -- JSON: title, summary, text
    external_id TEXT NOT NULL,
    details_url TEXT,
    started_at TEXT NOT NULL,
    completed_at TEXT
);
CREATE TABLE IF NOT EXISTS commit_status (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository INTEGER NOT NULL REFERENCES repository,
    sha TEXT NOT NULL,
    state TEXT NOT NULL,                     -- error | failure | pending | success
    context TEXT NOT NULL,
    description TEXT,
    target_url TEXT,
    creator TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS hook (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    app INTEGER UNIQUE REFERENCES app,       -- NULL: a plain webhook
    repository INTEGER REFERENCES repository,-- NULL in a plain webhook: every repository
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    UNIQUE (repository, url)
);
CREATE TABLE IF NOT EXISTS delivery (        -- one row an attempt; a redelivery keeps the GUID
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL,
    hook INTEGER NOT NULL REFERENCES hook,
    event TEXT NOT NULL,
    action TEXT,
    installation INTEGER,
    repository INTEGER,
    redelivery INTEGER NOT NULL,
    payload TEXT NOT NULL,
    created_at TEXT NOT NULL,
    delivered_at TEXT,                       -- NULL: waiting to be sent
    duration REAL,
    status TEXT,
    status_code INTEGER,
    request_headers TEXT,
    response_headers TEXT,
    response_body TEXT
);
CREATE INDEX IF NOT EXISTS delivery_waiting ON delivery (id) WHERE delivered_at IS NULL;
CREATE TABLE IF NOT EXISTS fault (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    times INTEGER NOT NULL,                  -- how often it still strikes
    struck INTEGER NOT NULL DEFAULT 0,
    options TEXT NOT NULL                    -- JSON
);
CREATE TABLE IF NOT EXISTS request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    holder TEXT NOT NULL,                    -- whose rate limit it counts against
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,                 -- 0: the connection was dropped
    fault TEXT
);
CREATE INDEX IF NOT EXISTS request_counted ON request (holder, at);
CREATE TABLE IF NOT EXISTS setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
