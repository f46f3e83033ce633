-- bucket.go and Rate.pace.

-- pace returns cost and drain, which a meter remembers.
local function pace(r)
  if not r.cost then
    local a, b = r.limit, r.window
    while b ~= 0 do a, b = b, a % b end
    r.cost, r.drain = r.window / a, r.limit / a
  end
  return r.cost, r.drain
end

local function brim(r)
  local cost, drain = pace(r)
  if algorithm == LEAKY_BUCKET then return max_delay * drain + cost end
  return (r.burst == 0 and r.limit or r.burst) * cost
end

-- drain_to returns what is left at now of a level that was so high at an instant.
local function drain_to(level, instant, drain, lowest)
  local elapsed = larger(0, now - instant)
  if elapsed > floor(level / drain) then return lowest end
  return larger(lowest, level - elapsed * drain)
end

local function settle(m)
  local _, drain = pace(m)
  local level, at = drain_to(m.used, m.index, drain, lifetime * drain), larger(m.index, now)
  if known > 0 then
    local full = drain_to(brim(m), known, drain, 0)
    if full >= level then level, at = full, larger(at, known) end
  end
  m.used, m.index = level, at
end

local function fill(m, amount)
  local cost = pace(m)
  m.used = m.used + smaller(amount, floor((MAX_EXACT - m.used) / cost)) * cost
end
