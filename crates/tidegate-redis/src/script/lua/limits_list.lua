-- The fields of all limits under which a key may have a state; whether there are others comes first.
local all, reply = call('HGETALL', key), {0}
for i = 1, #all, 2 do
  if all[i] ~= '~' then
    reply[#reply + 1] = all[i]
  elseif (read_entry(all[i + 1]) or {}).live then
    reply[1] = 1
  end
end
return reply
