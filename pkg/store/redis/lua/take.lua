-- take.go.

-- read returns what a reading holds: left, limit, resets, wait, forgotten.
local function read(amount)
  if waits then
    local wait = s.expires - now + 1
    return 0, rates[1].limit, wait, wait, false
  end
  local left, limit, resets, wait, forgotten
  for i = 1, #meters do
    local m = meters[i]
    local m_left, m_limit, m_resets, m_wait, m_forgotten = larger(0, m.limit - m.used), m.limit, 0, 0, false
    if kind_now == WINDOWS then
      m_resets = start(m, m.index + 1) - now
      if fair then
        local used, own_left = share(m, amount)
        m_left, m_limit = own_left, used + own_left
      end
      if start(m, m.index) < known then m_left, m_forgotten = 0, true end
      if m_left < amount then m_wait = m_resets end
    elseif kind_now == SLIDING then
      m_resets = larger(0, log_ends(m) - now)
      local excess, from = m.used - m.limit + amount, 1
      while excess > 0 and from <= #m.log do
        local at, count, next = unpack(ENTRY, m.log, from)
        excess, m_wait, from = excess - count, at + m.window - now, next
      end
      if known > 0 then
        local ends = spent_by(m, known + lifetime) + m.window - now
        if ends > 0 then
          m_left, m_wait, m_resets, m_forgotten = 0, larger(m_wait, ends), larger(m_resets, ends), true
        end
      end
    else
      local cost, drain = pace(m)
      local full, lowest, ahead = brim(m), lifetime * drain, m.index - now
      m_left, m_limit = floor(larger(0, full - m.used) / cost), floor((full - lowest) / cost)
      if m.used > lowest then m_resets = ahead + ceil_div(m.used - lowest, drain) end
      if m_left < amount and amount <= m_limit then m_wait = ahead + ceil_div(m.used - full + amount * cost, drain) end
    end
    if either and amount > m_limit then m_wait = MAX_EXACT end
    if i == 1 then
      left, limit, resets, wait, forgotten = m_left, m_limit, m_resets, m_wait, m_forgotten
    elseif either then
      wait, forgotten = smaller(wait, m_wait), forgotten and m_forgotten
      if m_left > left or m_left == left and m_resets < resets then
        left, limit, resets = m_left, m_limit, m_resets
      end
    else
      wait, forgotten = larger(wait, m_wait), forgotten or m_forgotten
      if m_left < left or m_left == left and m_resets > resets then
        left, limit, resets = m_left, m_limit, m_resets
      end
    end
  end
  return left, limit, resets, wait, forgotten
end

-- keep and restore let a command change nothing.
local function keep()
  local kept = {}
  for i, m in ipairs(meters) do kept[i] = {used = m.used, log = m.log} end
  return kept
end

local function restore(kept)
  for i, m in ipairs(meters) do m.used, m.log = kept[i].used, kept[i].log end
end

local reason, granted, retry, delay = GRANTED, 0, 0, 0

if op == TAKE or op == PEEK then
  if first == 1 and kind_now == WINDOWS then s.asked = s.asked + 1 end

  local large = 0
  for i = 1, #rates do
    local most = rates[i].limit
    if kind == BUCKETS then
      local cost, drain = pace(rates[i])
      most = floor((brim(rates[i]) - lifetime * drain) / cost)
    end
    if min > most then large = large + 1 end
  end
  local left, _, _, wait, forgotten = read(min)
  if large == #rates or large > 0 and any == 0 or default > 0 and never_fits(rates[1].limit, min) then
    reason = TOO_LARGE
  elseif left < min then
    reason, retry = forgotten and AMNESIA or EXHAUSTED, wait
  else
    local kept = op == PEEK and keep()
    granted = larger(min, smaller(want, ceil_div(left, larger(0, s.before - s.asked) + 1)))
    for i = 1, #meters do
      local m = meters[i]
      if kind_now == WINDOWS then
        m.used = m.used + smaller(granted, MAX_EXACT - m.used)
      elseif kind_now == SLIDING then
        note(m, spent_by(m, now + lifetime), granted)
      else
        local cost, drain = pace(m)
        fill(m, granted)
        if s.algorithm == LEAKY_BUCKET then delay = larger(delay, ceil_div(larger(0, m.used - cost), drain)) end
      end
    end
    if kind_now ~= WINDOWS then s.expires = larger(s.expires, now + lifetime + delay) end
    if kept then restore(kept) end
  end
  if fair and reason ~= TOO_LARGE and op == TAKE then
    tenants = tenants or {}
    tenants[account] = (granted_to(account) or 0) + granted
  end
end
