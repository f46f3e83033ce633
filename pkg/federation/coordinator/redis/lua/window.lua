-- window.go.

local function start() return s.index * s.window end
local function finish() return start() + s.window end
local function forgot() return start() < memory.since and not vouched() end

-- refuses returns why a command cannot be applied, and when it may be.
local function refuses()
  local served = larger(s.latest, start())
  if now < served then return BEHIND, served - now end
  if memory.term < s.term then return BEHIND, p.window end
  if s.term > 0 and s.window ~= p.window and now < finish() then return MISMATCHED, finish() - now end
end

local function pack_usage(member, granted, admitted, refused, reported, complete)
  return pack(MEMBER_USAGE, #member, member, granted, admitted, refused, reported, complete)
end

-- over returns a window that is over. Memories before granted the units before of it,
-- and this one what the accounts add up to if it is the one that was open.
local function over(index, before)
  local sum, list = before, {}
  local function use(member, units)
    sum, list[#list + 1] = sum + units, pack_usage(member, units, 0, 0, 0, 0)
  end
  for _, t in ipairs(s.standings) do use(t.member, t.slice + (index == s.index and t.granted or 0)) end
  for _, m in ipairs(p.members) do
    if not s.by[m.name] and slice_of(m) > 0 then use(m.name, slice_of(m)) end
  end
  return pack(CLOSED, index, s.limit, sum, #list) .. table.concat(list)
end

-- remember adds a window that is over, whose place is among the latest.
local function remember(place, index, text)
  table.insert(s.closed, place, index)
  written['c' .. index], dropped['c' .. index] = text, nil
  if #s.closed > MAX_CLOSED then
    local last = 'c' .. table.remove(s.closed)
    written[last], dropped[last] = nil, true
  end
end

local function close()
  if not forgot() then remember(1, s.index, over(s.index, s.before)) end
end

local function open(index)
  local same, following = s.window == p.window, index == s.index + 1
  if same then
    close()
  else
    while #s.closed > 0 do dropped['c' .. table.remove(s.closed)] = true end
  end
  close_accounts()
  local list = s.standings
  s.standings, s.by = {}, {}
  for _, t in ipairs(list) do
    if p.by[t.member] or t.slice ~= 0 or t.next ~= 0 then
      t.before, t.demand, t.slice = t.demand, 0, t.next
      if not (same and following) then t.before = 0 end
      if not same then t.told = index end
      s.standings[#s.standings + 1], s.by[t.member] = t, t
    end
  end
  s.window, s.index, s.limit, s.before = p.window, index, p.limit, 0
end

-- advance opens the window of now for this memory.
local function advance()
  local index, later = quotient(now, p.window), memory.term > s.term
  if s.window ~= p.window or index ~= s.index then
    open(index)
  elseif later then
    s.before = s.before + s.granted
    close_accounts()
  end
  if later then
    for _, t in ipairs(s.standings) do t.told = s.index end
  end
  s.term, s.latest, s.limit = memory.term, now, smaller(s.limit, p.limit)
end
