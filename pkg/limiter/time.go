package limiter

// Instant is a point in time on a store's clock, in microseconds since the Unix
// epoch. Microseconds stay exact in a Lua number (2^53) until the year 2255;
// nanoseconds would not.
type Instant int64

// MaxInstant is in the year 2112. It leaves every number that is computed from an
// instant exact.
const MaxInstant = Instant(1) << 52

// Micros is a length of time in microseconds.
type Micros int64

// Lengths of time in the unit of this package.
const (
	Millisecond Micros = 1_000
	Second      Micros = 1_000_000
)

// Add returns the instant d after t.
func (t Instant) Add(d Micros) Instant { return t + Instant(d) }

// Sub returns the length of time from u to t. It is negative when t is before u.
func (t Instant) Sub(u Instant) Micros { return Micros(t - u) }
