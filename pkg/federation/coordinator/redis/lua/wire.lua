-- The arguments, the layout of a budget, and the reply. Integers are packed, big
-- endian; a text follows its length.
--
-- KEYS: budget   a hash: of field "memory" what State holds but for what follows, of
--                "a", a member and a holder an account, of "c" and an index a window
--                that is over, of "v" and a member a vouch, with the
--                term of the memory it is for, of "t" what members said of their tenants
-- ARGV: params   ledger.Params without Block
--       command  ledger.Command without names and Memory
--       member   of the command
--       holder   of the command

local VERSION = 1
local COMMAND, USAGE = '>BlllllllllllllB', '>lllB'
local PARAMS, MEMBER = '>llBBB', '>Hc0llll'
local HEAD, STANDING, INDEX = '>Bc54llllllllH', '>Hc0lllllllll', '>l'
local ACCOUNT, NAME, VOUCH, TENANTS = '>ll', '>Hc0', '>ll', '>Hc0lll'
local CLOSED, MEMBER_USAGE = '>lllH', '>Hc0lllBB'
local GRANT = '>Blllllllllll'

local RELEASE, REPORT = 2, 3
local FAIR_SHARE, STATIC = 0, 2
local GRANTED, EXHAUSTED, KEPT, STALE, AMNESIA, BEHIND = 1, 2, 3, 4, 5, 6
local UNKNOWN, CROWDED, MISMATCHED, FORFEITED = 7, 8, 9, 11
local MAX_HOLDERS, MAX_CLOSED, NO_SLICE = 64, 8, 1000000000000
local MAX_WINDOW, MAX_EXACT = 744 * 3600 * 1000000, 9007199254740991

local unpack, pack = struct.unpack, struct.pack
local smaller, larger = math.min, math.max

-- quotient divides integers that are not negative and rounds down. Their quotient as
-- floating-point numbers may round up to the next integer.
local function quotient(a, b) return (a - math.fmod(a, b)) / b end

local function read_params(text)
  local count, at
  local p = {members = {}, by = {}}
  p.limit, p.window, p.strategy, p.slices, count, at = unpack(PARAMS, text)
  p.slices = p.slices == 1
  for i = 1, count do
    local m = {}
    m.name, m.weight, m.nominal, m.kept, m.borrowing, at = unpack(MEMBER, text, at)
    m.place, p.members[i], p.by[m.name] = i, m, m
  end
  return p
end

local function read_command(text)
  local count, at
  local c = {usage = {}, member = ARGV[3], holder = ARGV[4]}
  c.op, c.seq, c.index, c.term, c.granted, c.min, c.want, c.demand, c.weight, c.met, c.unmet, c.slice,
    c.born, c.list, count, at = unpack(COMMAND, text)
  for i = 1, count do
    local u = {}
    u.index, u.admitted, u.refused, u.complete, at = unpack(USAGE, text, at)
    c.usage[i] = u
  end
  return c
end

local p, c = read_params(ARGV[1]), read_command(ARGV[2])
