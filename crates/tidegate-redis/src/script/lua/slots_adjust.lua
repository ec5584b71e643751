local key, _, width, count, _, most, cost = KEYS[1], unpacked('<dddBdd', ARGV[1], 2)
local view = slots_of(key, {width = width, slots = count, most = most})
if view.err then return view end
local slots = settled(view)
