-- Asks under limits of any algorithm.
--
-- Each algorithm has three functions, by the letter of its packs: `look` reads a state and decides, `spend` writes it
-- after a take, `refuse` writes it after a denial where that is needed. A view is what `look` returns: `passes`, `tell`
-- (the state to reply), `err`, or `stale`.

--== penalty
-- A limit with a penalty has two bids behind its own. That of the ban, `q` and the pack of a log of one entry, has to be
-- allowed, and is not spent. That of the strikes, `x` and the pack of a log, does not decide.
look.q = function(key, pack, begin) return look.g(key, string.sub(pack, 2), begin) end
spend.q = function() end
refuse.q = function(key, pack, view) refuse.g(key, string.sub(pack, 2), view) end
look.x = function(key, pack, begin)
  local log = look.g(key, string.sub(pack, 2), begin)
  if log.err or log.stale then return log end
  return {passes = true, tell = log.tell, log = log}
end
spend.x, refuse.x = spend.q, spend.q
-- Adds a strike for the bid `i - 2`, which has denied, unless its key is banned. The last strike begins the ban.
strike = function(i, views)
  local ban, log = views[i - 1], views[i].log
  if not ban or views[i - 2].passes or not ban.passes then return end
  if log.passes then spend.g(KEYS[i], ARGV[i], log) end
  if not log.passes or log.count + 1 >= log.limit.amount then
    spend.g(KEYS[i - 1], ARGV[i - 1], ban)
    call('DEL', KEYS[i])
  end
end

--== take
-- One ask takes under all of its limits, or under none. Several asks are independent: each sees those before it, and
-- has its own verdict and its own error. The sizes of several asks are one argument after the others, one byte each.
local begins, sizes = {}, match(ARGV[n], '^[aw]') and ARGV[n]
if sizes then n = n - 1 end
if string.byte(ARGV[n]) == 98 then
  n = n / 2
  for i = 1, n do begins[i] = begin_of(ARGV[n + i]) end
end
-- Looks at the state of one bid.
local function look_at(i) return look[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], begins[i]) end
-- Each limit that denied records the denial, as for a single ask. With several bids on one state, one after the other.
-- The first number of the reply is 0; the states follow in the order of the bids.
local function deny(first, last, views)
  local reply, touched = {0}, {}
  for i = first, last do
    local view = views[i]
    if not view.passes then
      local again = touched[KEYS[i]] and look_at(i) or view
      if not again.passes then
        refuse[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], again)
        view = again
      end
      touched[KEYS[i]] = true
    end
    reply[#reply + 1] = view.tell or false
  end
  if strike then
    for i = first + 2, last do
      if views[i].log then strike(i, views) end
    end
  end
  return reply
end
-- Takes an ask with several bids on one state. If a later bid is denied, all states are restored from copies. Copies
-- are keys of the call with a `~`, in the same slot, and exist only while the script runs.
local function take_twins()
  local reply, copied, refused = {1}, {}, nil
  for i = 1, n do
    local key = KEYS[i]
    if not copied[key] then copied[key] = call('COPY', key, key .. '~', 'REPLACE') end
  end
  for i = 1, n do
    local view = look_at(i)
    reply[i + 1] = view.tell or false
    if not view.passes then
      refuse[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], view)
      refused, reply[i + 1] = i, view.tell or false
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
    reply[1] = 0
    for i = 1, n do
      if i ~= refused then reply[i + 1] = look_at(i).tell or false end
    end
  end
  return reply
end
-- Takes under the limits `first` to `last`. Returns whether all was spent, and the state of each before the take. The
-- first number of the result is 1 for spent, 0 for denied, 2 for an unknown initial state. States are read before any
-- is written, so a denial and an error spend nothing. An ask behind an unknown one with one of its states is unknown,
-- too: both are repeated in their order.
local undone = {}
local function take(first, last)
  local views, all, unknown = {}, true, false
  for i = first, last do
    local view = look_at(i)
    if view.err then return view end
    views[i], all, unknown = view, all and view.passes, unknown or view.stale or undone[KEYS[i]]
  end
  if not unknown and not all then return deny(first, last, views) end
  -- More keys than bids means that the copies were passed, so a state has several bids.
  if not unknown and #KEYS > n then return take_twins() end
  -- The initial state of a key without a live state has to be known first.
  local reply = {unknown and 2 or 1}
  for i = first, last do
    if unknown then
      undone[KEYS[i]] = true
    else
      spend[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i], views[i])
    end
    reply[#reply + 1] = views[i].tell or false
  end
  return reply
end
-- A single ask has its error as the whole reply.
if not sizes then
  local reply = take(1, n)
  return reply.err and reply or {time[1], time[2], reply}
end
--- each
local first, replies = 1, {time[1], time[2]}
for i = 2, #sizes do
  local last = first + string.byte(sizes, i) - 1
  replies[i + 1], first = each(first, last), last + 1
end
return replies

--== each
-- An error affects only its own ask: those before it are done, and those after it will be. The message of an error from
-- a failed command has the name and the line of the script before it, which are removed.
local function each(first, last)
  local fine, reply = pcall(take, first, last)
  if fine or type(reply) == 'table' then return reply end
  return {err = match(reply, '^@?user_script: ?%d+: (%u+ .*)$') or 'ERR ' .. reply}
end

--== peek
-- Returns all states, without a change. The verdict is not used.
local reply = {time[1], time[2], {0}}
for i = 1, n do
  local view = look[string.sub(ARGV[i], 1, 1)](KEYS[i], ARGV[i])
  if view.err then return view end
  reply[3][i + 1] = view.tell or false
end
return reply

--== nothing
-- Returns the digit of the argument. It is the reply of operations that do not apply to an algorithm.
return tonumber(string.sub(ARGV[1], 2))
