-- No foreign key from orders to sales: InnoDB would lock the sale's row, shared, for every order that is inserted, and
-- two buyers who then want to change that row would wait for each other. The audit looks for orders without a sale.
CREATE TABLE sales (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(200) NOT NULL,
    price_cents BIGINT NOT NULL CHECK (price_cents >= 0),
    stock BIGINT NOT NULL CHECK (stock >= 0),
    available BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    opens_at BIGINT NOT NULL,
    closes_at BIGINT NOT NULL,
    pay_within BIGINT NOT NULL CHECK (pay_within > 0),
    CONSTRAINT available_is_within_stock CHECK (available >= 0 AND available <= stock)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE orders (
    id VARCHAR(64) PRIMARY KEY,
    sale_id BIGINT NOT NULL,
    user_id VARCHAR(100) NOT NULL,
    request_key VARCHAR(64) NOT NULL,
    state VARCHAR(16) NOT NULL CHECK (state IN ('reserved', 'paid')),
    strategy VARCHAR(32) NOT NULL,
    reserved_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    paid_at BIGINT,
    CONSTRAINT one_order_per_user UNIQUE (sale_id, user_id),
    CONSTRAINT one_order_per_key UNIQUE (user_id, request_key),
    INDEX orders_by_expiry (state, expires_at)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE returns (
    order_id VARCHAR(64) PRIMARY KEY,
    sale_id BIGINT NOT NULL,
    user_id VARCHAR(100) NOT NULL,
    request_key VARCHAR(64) NOT NULL,
    at BIGINT NOT NULL,
    INDEX returns_by_key (user_id, request_key)
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE payments (
    order_id VARCHAR(64) PRIMARY KEY,
    cents BIGINT NOT NULL,
    at BIGINT NOT NULL
) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
