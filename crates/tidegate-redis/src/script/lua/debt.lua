local function write_debt(key, clear, ticks, was)
  --- debt_write
end
look.t = function(key, packs)
  local old, from = call('GET', key), 2
  --- debt_judge
  return {passes = passes, tell = old, clear = clear, ticks = ticks, cut = cut, was = was}
end
spend.t = function(key, _, view) write_debt(key, view.clear, view.ticks, view.was) end
refuse.t = function(key, _, view)
  if view.cut then write_debt(key, view.clear, view.ticks, view.was) end
end
look.l, spend.l, refuse.l = look.t, spend.t, refuse.t
