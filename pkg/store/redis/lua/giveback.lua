-- giveback.go, and reset of step.go.

if op == RETURN then
  local windows = {}
  for at = 1, #ARGV[3], RATE_BYTES + 8 do
    local limit, window, _, offset, monthly, next = unpack(RATE, ARGV[3], at)
    windows[#windows + 1] = {limit = limit, window = window, offset = offset, monthly = monthly, index = (unpack('>l', ARGV[3], next))}
  end

  local function in_windows()
    for i, m in ipairs(meters) do
      local w = windows[i]
      if not same_windows(m, w) or m.index ~= w.index or want > m.used or start(m, m.index) < known then return false end
    end
    if fair then
      if want > (granted_to(account) or 0) then return false end
      tenants[account] = tenants[account] - want
    end
    for _, m in ipairs(meters) do m.used = m.used - want end
    return true
  end

  -- erase takes units off that were granted at an instant or later, the oldest first.
  local function erase(m, instant, amount)
    local log, left = {}, amount
    for from = 1, #m.log, ENTRY_BYTES do
      local at, count = unpack(ENTRY, m.log, from)
      if at >= instant then
        local part = smaller(left, count)
        left, count = left - part, count - part
      end
      if count > 0 then log[#log + 1] = pack(ENTRY, at, count) end
    end
    if left > 0 then return false end
    m.log, m.used = table.concat(log), m.used - amount
    return true
  end

  local function off(m)
    local age = m.index - granted_at
    if kind == SLIDING then return age < m.window and erase(m, granted_at, want) end
    local cost, drain = pace(m)
    if want > floor(MAX_EXACT / cost) or age > floor(want * cost / drain) then return false end
    local rest = want * cost - age * drain
    if rest <= 0 or rest > m.used then return false end
    m.used = larger(lifetime * drain, m.used - rest)
    return true
  end

  local function off_all()
    for i, m in ipairs(meters) do
      local w = windows[i]
      if w.limit ~= m.limit or w.window ~= m.window or granted_at < known or not off(m) then return false end
    end
    return true
  end

  reason = FORFEITED
  if waits or s.began > 0 and granted_at <= s.began or #windows ~= #meters then
    reason = FORFEITED
  elseif kind_now == WINDOWS then
    if in_windows() then reason = GRANTED end
  elseif s.algorithm ~= LEAKY_BUCKET and granted_at <= now then
    local kept = keep()
    if off_all() then reason = GRANTED else restore(kept) end
  end
  if reason == GRANTED then granted = want end
elseif op == RESET then
  tenants = nil
  for _, m in ipairs(meters) do
    m.used, m.log = 0, ''
    if kind_now ~= WINDOWS then m.index = now end
  end
  advance()
  if fair then split() end
end
