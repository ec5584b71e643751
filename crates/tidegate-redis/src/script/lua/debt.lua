local function write_debt(key, clear, ticks, was)
  --- debt_write
end
-- What is no debt at all is left to be found out when it is read.
local function debt_is_live(old)
  local whole, part = match(old or '0', '^(%d+):?(%d*)$')
  if not whole then return true end
  return whole * 1 > now or whole * 1 == now and part ~= '' and part * 1 > 0
end
look.t = function(key, packs, begin)
  local old, from = call('GET', key), 2
  local tell = old
  if begin and not debt_is_live(old) then
    if not begin.known then return stale end
    old, tell = begin.state, nil
  end
  --- debt_judge
  if not tell then was = nil end
  return {passes = passes, tell = tell, clear = clear, ticks = ticks, cut = cut, was = was}
end
spend.t = function(key, _, view) write_debt(key, view.clear, view.ticks, view.was) end
refuse.t = function(key, _, view)
  if view.cut then write_debt(key, view.clear, view.ticks, view.was) end
end
look.l, spend.l, refuse.l = look.t, spend.t, refuse.t
