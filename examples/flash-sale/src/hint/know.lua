-- Puts users among those for whom a unit was taken. KEYS: the counter, the users. ARGV: the users' life (s), the users.
-- Gives 1: they are there, -1: they could not be written.
local kind = redis.pcall('TYPE', KEYS[2])
if kind.ok ~= 'set' then redis.pcall('DEL', KEYS[2]) end
if type(redis.pcall('SADD', KEYS[2], unpack(ARGV, 2))) ~= 'number' then return -1 end
redis.pcall('EXPIRE', KEYS[2], ARGV[1])
return 1
