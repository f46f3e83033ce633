-- lease.go and release.go, and answer of step.go.

local function answer(reason)
  local g = {
    reason = reason, seq = c.seq, granted = 0, slice = 0, now_slice = 0,
    remaining = room(), expires_in = finish() - s.latest, retry_after = 0,
  }
  if account then g.seq, g.granted = account.seq, account.granted end
  local t, m = s.by[c.member], p.by[c.member]
  if t then
    g.slice = promise(t, m and slice_of(m) or 0)
    if not forgot() then g.now_slice = t.slice end
  end
  if reason ~= GRANTED and reason ~= STALE then g.retry_after = g.expires_in end
  return g
end

local function this_epoch() return c.index == s.index and c.term == s.term end

-- guide returns the most that one lease should take.
local function guide(free)
  local active = 0
  for _, t in ipairs(s.standings) do
    if t.demand > 0 or t.before > 0 then active = active + 1 end
  end
  return quotient(free + 2 * active - 1, 2 * active)
end

local function lease(m)
  local had, told = account and account.granted or 0, this_epoch() and c.granted or 0
  local least, more = larger(0, told + c.min - had), larger(0, told + c.want - had)
  local t = attend(m)
  t.demand = larger(has(m) + more, c.demand > 0 and c.demand or t.demand)
  if forgot() then return answer(AMNESIA) end
  if not account and t.holders >= MAX_HOLDERS then return answer(CROWDED) end
  local free = larger(0, s.limit - taken())
  local grant = smaller(more, smaller(room(), larger(least, guide(free))))
  local reason = GRANTED
  if grant < least then
    grant, reason = 0, free < least and EXHAUSTED or KEPT
  end
  book(had + grant)
  return answer(reason)
end

local function release(m)
  local t = attend(m)
  local reason = this_epoch() and GRANTED or FORFEITED
  if account then book(reason == GRANTED and smaller(account.granted, c.granted) or account.granted) end
  if reason == GRANTED then
    t.demand = larger(has(m), c.demand)
    t.before = smaller(t.before, t.demand)
  end
  return answer(reason)
end
