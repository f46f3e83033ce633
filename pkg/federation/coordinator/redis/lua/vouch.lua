-- vouch.go.

-- vouch notes whether the member vouches for the memory, while that matters.
local function vouch()
  if s.index * s.window >= memory.since then return end
  local field = 'v' .. c.member
  if c.list ~= 0 and c.born == memory.term then
    written[field], dropped[field] = pack(VOUCH, memory.term, c.list), nil
  else
    written[field], dropped[field] = nil, true
  end
end

-- vouched reports whether every member vouches for the memory, and means the same ones.
local function vouched()
  if c.list == 0 then return false end
  local means = pack(VOUCH, memory.term, c.list)
  for _, m in ipairs(p.members) do
    local field = 'v' .. m.name
    local text = written[field]
    if not text and not dropped[field] then text = call('HGET', KEYS[1], field) end
    if text ~= means then return false end
  end
  return true
end
