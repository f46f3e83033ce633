-- step.go.

local function pack_grant(g)
  return pack(GRANT, g.reason, g.seq, s.index, s.term, g.granted, g.slice, g.now_slice, s.limit, g.remaining,
    g.expires_in, g.retry_after, s.latest)
end

-- dismiss answers one that is not a member.
local function dismiss()
  if s.by[c.member] then attend({name = c.member, kept = 0}) end
  return answer(UNKNOWN)
end

local function apply()
  advance()
  local m = p.by[c.member]
  if not m then return dismiss() end
  if c.op == REPORT then return report(m) end
  if stale() then return answer(STALE) end
  if c.op == RELEASE then return release(m) end
  return lease(m)
end

recall()
local refusal, wait = refuses()
if refusal then return pack(GRANT, refusal, 0, 0, 0, 0, c.slice, 0, 0, 0, 0, wait, now) end
find()
local g = apply()
keep()
return pack_grant(g)
