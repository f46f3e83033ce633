-- slots.go and expiries.go.

local function remove(h)
  discount(h)
  infer(h, 0)
  if h.hungry then s.hungry = enter(KEYS[4], s.hungry, h, false) end
  call('ZREM', KEYS[2], h.name)
  s.holders = s.holders - 1
  known[h.name] = false
  local last = call('HGET', KEYS[1], 's' .. s.holders)
  call('HDEL', KEYS[1], 'h' .. h.name, 's' .. s.holders)
  if last == h.name then return end
  last = find(last)
  last.slot = h.slot
  call('HSET', KEYS[1], 's' .. last.slot, last.name)
  if last.hungry then call('ZADD', KEYS[4], last.slot, last.name) end
end

-- expire forgets all whose share has expired, in the order in which they did, by name
-- where that is the same.
local function expire()
  for _, who in ipairs(call('ZRANGE', KEYS[2], '-inf', s.now, 'BYSCORE')) do remove(find(who)) end
end
