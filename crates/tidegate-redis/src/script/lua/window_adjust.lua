local function adjust_window(key, view, cost, most, first_hit)
  local after = math.max(0, math.min(most, view.count + cost))
  if after == 0 and first_hit == 1 then
    call('DEL', key)
  else
    write_window(key, view.ends, after)
  end
  return after == view.count + cost and 1 or 0
end
local _, period, first_hit, most, cost = unpacked('<ddBdd', ARGV[1], 2)
local view = window(KEYS[1], period, first_hit, most, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end
