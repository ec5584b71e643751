local key, _, width, count, _, most, cost = KEYS[1], unpacked('<dddBdd', ARGV[1], 2)
local view = slots_of(key, {width = width, slots = count, most = most}, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end
local slots = settled(view)
