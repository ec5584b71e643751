-- Sets the counter, whatever is there. KEYS: the counter, the users. ARGV: what is left, the counter's life (ms), the users' life (s).
-- Gives 1: set, -1: it could not be written.
-- The users stay: those in the set are admitted, and every buyer with an order must be in it.
local kind = redis.pcall('TYPE', KEYS[2])
if kind.ok ~= 'set' then redis.pcall('DEL', KEYS[2]) end
redis.pcall('EXPIRE', KEYS[2], ARGV[3])
local written = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if written.ok == nil then return -1 end
return 1
