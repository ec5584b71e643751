-- Undoes what was taken for a user, once. KEYS: the counter, the users. ARGV: the user.
-- Gives 1: given back, 0: there was nothing to give back, -1: unknown.
local was_known = redis.pcall('SREM', KEYS[2], ARGV[1])
if type(was_known) ~= 'number' then return -1 end
if was_known == 0 then return 0 end
-- INCR would make a counter where there is none, and it would say 1.
if type(redis.pcall('GET', KEYS[1])) ~= 'string' then return -1 end
if type(redis.pcall('INCR', KEYS[1])) ~= 'number' then return -1 end
return 1
