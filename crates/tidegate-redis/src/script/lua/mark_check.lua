-- Nothing is left of a take from before the last mark, or from before the clock stepped back.
local taken_at, marked_at = unpacked('<d', ARGV[2], 2), call('GET', KEYS[2])
if now + 100000 < taken_at or marked_at and taken_at <= tonumber(marked_at) then return 0 end
