local key, name = KEYS[1], string.sub(ARGV[1], 10)
local view = holders_of(key)
if view.err then return view end
drop_ended(key, view)
if call('ZREM', key, name) == 0 then return 0 end
count_places(key, view.places - tonumber(match(name, '^(%d+):')))
return 1
