-- The table of overrides, in one hash for all servers with the same prefix.
--
-- A field is the identity of an override, which begins with a digit, and its value is the override. The field 'version'
-- has another number after each change, so that a server sees with one read that there is something new. The field 'epoch'
-- has the first version of the table: another one means that the table was lost and begun anew.

--== read
-- Returns the version and the number of fields, then all fields and values if there are at most as many as the argument
-- says.
local key = KEYS[1]
local version, count = redis.call('HGET', key, 'version') or '0', redis.call('HLEN', key)
if count > ARGV[1] + 2 then return {version, count} end
return {version, count, redis.call('HGETALL', key)}

--== change
-- Makes a change if the version is still the one that the change is based on. The arguments are that version, the time
-- at which the table ends in seconds since 1970 or 0 if it has no end, the number of fields to delete, those fields, and
-- the fields to set with their values. Returns 1 if the change was made.
local key = KEYS[1]
local old = redis.call('HGET', key, 'version') or '0'
if old ~= ARGV[1] then return 0 end
-- A version that contains the time does not occur again in a table that was lost and begins anew. It is written first: a
-- server without memory rejects it, and then nothing is changed.
local time = redis.call('TIME')
local version = math.max(old + 1, time[1] * 1000000 + time[2])
local text = string.format('%.0f', version)
redis.call('HSET', key, 'version', text, 'epoch', redis.call('HGET', key, 'epoch') or text)
local first = 4 + ARGV[3]
for i = 4, first - 1 do redis.call('HDEL', key, ARGV[i]) end
for i = first, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
if ARGV[2] == '0' then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, string.format('%.0f', math.max(ARGV[2] - time[1], 1) * 1000))
end
return 1
