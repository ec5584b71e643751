local reply = {time[1], time[2], 0}
for i = 1, n do
  local view = look[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i])
  if view.err then return view end
  reply[i + 3] = view.tell or false
end
return reply
