-- State.KeepFor, as the millisecond from which on nobody misses a counter.

local function ends_of(s)
  local ends, of = s.expires, machine(s.algorithm)
  for _, m in ipairs(s.meters) do
    local counts
    if of == WINDOWS then
      counts = start(m, m.index + 1)
    elseif of == SLIDING then
      counts = larger(m.index, log_ends(m))
    else
      local _, drain = pace(m)
      counts = m.index + ceil_div(m.used, drain)
    end
    ends = larger(ends, counts + m.window)
  end
  return math.ceil(ends / 1000)
end
