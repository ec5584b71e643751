-- Only the last grant comes back: the next ones have been told to wait for it.
local clear, ticks = unpacked('<dH', ARGV[1], 76)
local rests, rests_ticks = rested_at(p, p.last, p.first_owed, p.first_owed_ticks, p.kept, p.kept_ticks)
local used_up = p.warms and p.saved + p.saved_ticks == 0
if not p.tell or used_up or rests ~= clear or rests_ticks ~= ticks or not less(now, 0, clear, ticks) then return 0 end
return refund(KEYS[1], p)
