CREATE TABLE sales (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    stock INTEGER NOT NULL CHECK (stock >= 0),
    available INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    opens_at INTEGER NOT NULL,
    closes_at INTEGER NOT NULL,
    pay_within INTEGER NOT NULL CHECK (pay_within > 0),
    CONSTRAINT available_is_within_stock CHECK (available >= 0 AND available <= stock)
) STRICT;

CREATE TABLE orders (
    id TEXT PRIMARY KEY,
    sale_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    request_key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'paid')),
    strategy TEXT NOT NULL,
    reserved_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    paid_at INTEGER,
    CONSTRAINT one_order_per_user UNIQUE (sale_id, user_id),
    CONSTRAINT one_order_per_key UNIQUE (user_id, request_key)
) STRICT;

CREATE INDEX orders_by_expiry ON orders (state, expires_at);

CREATE TABLE returns (
    order_id TEXT PRIMARY KEY,
    sale_id INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    request_key TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX returns_by_key ON returns (user_id, request_key);

CREATE TABLE payments (
    order_id TEXT PRIMARY KEY,
    cents INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
