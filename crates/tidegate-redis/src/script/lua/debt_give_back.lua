-- The last take comes back as far as time has not repaid it. Of one that others have followed, or have given back before,
-- no more can have been repaid than time has passed since; but somebody who was promised a later time would have company
-- there, so nothing comes back while anybody may wait.
local key = KEYS[1]
local old = call('GET', key)
local paid, paid_ticks, clear, ticks, quiet, quiet_ticks = unpacked('<dHdHdH', ARGV[1], 2)
local whole, part = match(old or '', '^(%d+):?(%d*)$')
if not whole then return 0 end
local stands, stands_ticks = whole * 1, part == '' and 0 or part * 1
local owed, owed_ticks = minus(stands, stands_ticks, now, 0)
local back, back_ticks
if stands == clear and stands_ticks == ticks then
  back, back_ticks = least(paid, paid_ticks, owed, owed_ticks)
elseif now >= taken_at and not less(quiet, quiet_ticks, owed, owed_ticks) then
  back, back_ticks = minus(paid, paid_ticks, now - taken_at, 0)
  back, back_ticks = least(back, back_ticks, owed, owed_ticks)
else
  return 0
end
if back + back_ticks > 0 then write_debt(key, minus(stands, stands_ticks, back, back_ticks)) end
return back == paid and back_ticks == paid_ticks and 1 or 0
