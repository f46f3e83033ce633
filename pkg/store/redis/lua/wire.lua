-- The arguments, the layout of a counter, and the reply. Integers are packed, big
-- endian.
--
-- KEYS: counter, guard
-- ARGV: head     version, algorithm, generation, number of rates, the rates
--       command  op, first, any, retention, min, want, at, buckets, max delay,
--                lifetime, since, default weight, floor, what the holder recalls of the
--                memory, and the names of the memories that the limit was born in
--       windows  of a return: each one's rate and index
--       tenant   that asks, when the window is split
--       weights  of the declared tenants, a map in MessagePack
--       reserve  1 when they share every window
-- A rate is limit, window, burst, offset, monthly. A holder recalls the start of the
-- memory it spoke to last, 0 for none; the instant up to which earlier ones may have
-- granted by a clock that was ahead; and the one of this memory, if it is another.
--
-- A counter is a head, of the generation and the rates that are in force; expires,
-- began, pulse, asked, before; for each rate the meter's index and used; and what
-- else the algorithm needs. For a sliding sum these are the length of each log and
-- the logs, each an entry after the other of instant and count; used is then the sum
-- of the log. For a window that is split it is a map in MessagePack of what each
-- tenant was granted, LATELY of fairness.lua included.
--
-- These are for step.lua, which decides one command of any kind. Most are decided by
-- batch.lua, many at once: to make the functions of the other would cost more than to
-- decide.

local VERSION = 1
local HEAD, RATE, COMMAND, TIMES, METER, ENTRY = '>BBlB', '>llllB', '>BBBBllllllllllll', '>lllll', '>ll', '>ll'
local HEAD_BYTES, RATE_BYTES, COMMAND_BYTES, ENTRY_BYTES = 11, 33, 100, 16

local RETENTION_AT = 4 -- in a command

local TAKE, RETURN, PEEK, RESET = 0, 1, 2, 3
local RESUME, LOSSLESS = 1, 2 -- of limiter.Retention; 0 when a loss is waited for
local GRANTED, EXHAUSTED, TOO_LARGE, STALE_GENERATION = 0, 1, 2, 3
local CLOCK_BEHIND, AMNESIA, FORFEITED = 4, 5, 6
local MAX_WINDOW, MAX_EXACT = 744 * 3600 * 1000000, 9007199254740991

local FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG, LEAKY_BUCKET = 0, 1, 2, 5
local WINDOWS, SLIDING, BUCKETS = 0, 1, 2

local MAX_LOG = 1024

-- A counter is dropped when it has ended, by sweep.lua, which leaves a trace in the
-- guard: a clock that was ahead meanwhile must not drop one unseen. BACKSTOP is how
-- much longer the server keeps one that nobody sweeps, in milliseconds. The ends are a
-- sorted set: of each counter its key, by the millisecond at which it ends or an earlier
-- one. Keys of counters that end within the same second may be one member, a list, by the end of
-- that second. So a sweep finds counters that have gone on since they were listed.
local BACKSTOP = 32 * 24 * 3600 * 1000

local spread = unpack -- of a list
local unpack, pack, sub, find, floor = struct.unpack, struct.pack, string.sub, string.find, math.floor
local smaller, larger = math.min, math.max
