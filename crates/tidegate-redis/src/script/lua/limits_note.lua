-- Lists a limit for so long from now on. One that is listed for longer stays so.
local field, ahead, order, since = match(ARGV[1], '^n(.+) (%d+) (%d+) (%d+)$')
local entry = read_entry(call('HGET', key, field))
if entry then
  entry.till = math.max(entry.till, now + ahead)
  write(field, entry)
else
  enter(field, {order = order * 1, since = since * 1, till = now + ahead}, sweep())
end
return {time[1], time[2]}
