local views, all, begins, unknown = {}, true, {}, false
if string.byte(ARGV[n]) == 98 then
  n = n / 2
  for i = 1, n do begins[i] = begin_of(ARGV[n + i]) end
end
local function look_again(i) return look[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], begins[i]) end
for i = 1, n do
  local view = look_again(i)
  if view.err then return view end
  views[i], all, unknown = view, all and view.passes, unknown or view.stale
end
-- What a key without a live state begins with has to be known first.
local reply = {time[1], time[2], unknown and 2 or all and 1 or 0}
if unknown then
  for i = 1, n do reply[i + 3] = views[i].tell or false end
  return reply
end
if not all then
  -- Each that refused sees the refusal, as if it had been asked alone; of twins, one after the other.
  local touched = {}
  for i = 1, n do
    local view = views[i]
    if not view.passes then
      local again = touched[KEYS[i]] and look_again(i) or view
      if not again.passes then
        refuse[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], again)
        view = again
      end
      touched[KEYS[i]] = true
    end
    reply[i + 3] = view.tell or false
  end
  return reply
end
if #KEYS == n then
  for i = 1, n do
    spend[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], views[i])
    reply[i + 3] = views[i].tell or false
  end
  return reply
end
-- One and the same state is asked for twice. What the first takes may be too much for the second: then all is put
-- back as it was, from copies.
local copied = {}
for i = 1, n do
  local key = KEYS[i]
  if not copied[key] then copied[key] = call('COPY', key, key .. '~', 'REPLACE') end
end
local refused
for i = 1, n do
  local view = look_again(i)
  reply[i + 3] = view.tell or false
  if not view.passes then
    refuse[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], view)
    refused, reply[i + 3] = i, view.tell or false
    break
  end
  spend[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], view)
end
for key, was_there in pairs(copied) do
  if refused and was_there == 1 then
    call('RENAME', key .. '~', key)
  elseif refused then
    call('DEL', key)
  elseif was_there == 1 then
    call('DEL', key .. '~')
  end
end
if refused then
  reply[3] = 0
  for i = 1, n do
    if i ~= refused then reply[i + 3] = look_again(i).tell or false end
  end
end
return reply
