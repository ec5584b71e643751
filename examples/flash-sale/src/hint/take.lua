-- Takes one unit for a user. KEYS: the counter, the users. ARGV: the user, the counter's longest life (ms), the users' life (s).
-- Gives 1: perhaps, 0: sold out, -1: unknown.
local left = redis.pcall('GET', KEYS[1])
if type(left) ~= 'string' or #left > 15 then return -1 end
if left ~= '0' and not string.match(left, '^%-?[1-9]%d*$') then return -1 end
-- A counter that is no longer corrected could say "sold out" for ever: only one that expires soon is believed.
local life = redis.pcall('PTTL', KEYS[1])
if type(life) ~= 'number' or life < 0 or life > tonumber(ARGV[2]) then return -1 end
local is_known = redis.pcall('SISMEMBER', KEYS[2], ARGV[1])
if type(is_known) ~= 'number' then return -1 end
if is_known == 1 then return 1 end
if tonumber(left) <= 0 then return 0 end
-- A Redis that takes no writes says so here.
if type(redis.pcall('DECR', KEYS[1])) ~= 'number' then return -1 end
redis.pcall('SADD', KEYS[2], ARGV[1])
redis.pcall('EXPIRE', KEYS[2], ARGV[3])
return 1
