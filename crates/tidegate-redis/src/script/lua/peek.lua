local view = look[string.sub(ARGV[1], 1, 1)](KEYS[1], ARGV[1])
if view.err then return view end
return {time[1], time[2], 0, view.tell or false}
