-- The arguments, the layout of a pool, and the reply. Integers are packed, big endian.
--
-- KEYS: pool      a hash: of field "memory" what State holds but for its holders, of
--                 "h" and a name that holder, of "s" and a slot the name of who has it
--       expiries  a sorted set of the names, by when the holders expire
--       opinions  a sorted set of the names of those that infer a limit, by that
--       hungry    a sorted set of the names of the hungry, by slot
-- ARGV: params    pool.Params
--       command   pool.Command without the holder
--       name      of the holder

local VERSION = 1
local PARAMS, COMMAND = '>lllBBBlll', '>Blllllll'
local MEMORY = '>Blllllllllllllllc54c51'
local HOLDER, GRANT = '>llllllllllB', '>llllllllllll'

local LEAVE, MIN, DEMAND_PROPORTIONAL, OCCUPANCY = 2, 1, 1, 1
local MAX_TTL = 3600 * 1000000

local unpack, pack = struct.unpack, struct.pack
local smaller, larger, floor = math.min, math.max, math.floor

local wanted, name = ARGV[1], ARGV[3]
local op, seq, term, applied, held, in_flight, peak, limit = unpack(COMMAND, ARGV[2])

-- params unpacks pool.Params.
local function params(text)
  local p = {}
  p.min, p.max, p.initial, p.aggregate, p.allocation, p.handoff, p.ttl, p.quarantine, p.generation = unpack(PARAMS, text)
  return p
end
