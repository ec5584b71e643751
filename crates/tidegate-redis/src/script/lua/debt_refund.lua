-- Other processes use the same state, so the order of its debts is not known. No more of a take can have been repaid than
-- time has passed since. A request that was promised a later time would have company there, so nothing comes back while
-- any may wait.
local key = KEYS[1]
local old = call('GET', key)
local price, price_ticks, paid, paid_ticks, quiet, quiet_ticks = unpacked('<dHdHdH', ARGV[1], 2)
local whole, part = match(old or '', '^(%d+):?(%d*)$')
if not whole or now < taken_at then return 0 end
local stands, stands_ticks = whole * 1, part == '' and 0 or part * 1
local owed, owed_ticks = minus(stands, stands_ticks, now, 0)
if less(quiet, quiet_ticks, owed, owed_ticks) then return 0 end
local back, back_ticks = minus(paid, paid_ticks, now - taken_at, 0)
back, back_ticks = least(back, back_ticks, owed, owed_ticks)
back, back_ticks = least(back, back_ticks, price, price_ticks)
if back + back_ticks > 0 then write_debt(key, minus(stands, stands_ticks, back, back_ticks)) end
return back == price and back_ticks == price_ticks and 1 or 0
