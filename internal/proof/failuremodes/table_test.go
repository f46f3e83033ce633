package failuremodes_test

import (
	"fmt"
	"time"
)

// A section is a part of the page.
type section struct {
	title, about string
	rows         []row
}

var sections = []section{
	{"The way to the coordinator", "", wayRows},
	{"The hub", "The coordinator of type `Kubernetes`: a controller that leads, and its API server.", leaderRows},
	{"Inside of a region", "", processRows},
	{"Clocks", "No two clocks have to agree. This section shows what happens when the clock that counts is set.", clockRows},
	{"Servers", "The coordinators of types `Redis` and `Postgres`, and the escrow of type `Redis`.", lossRows},
}

// preface says what the rows have in common.
func preface() string {
	units := func(load int64) string { return fmt.Sprintf("%d", load) }
	return fmt.Sprintf(`## Budgets

Each row is a test, named in its last column:
`+"`go test ./internal/proof/failuremodes -run 'TestRows/^hub-killed$'`"+` proves one. It injects the fault under load and measures; every figure
in a row is a bound that it fails outside of. A change of the code that makes a row untrue makes its test fail.

Δ is by how much the worst window exceeded the limit. All rows check that it is 0, by the window that each grant names and, unless the
clock itself is set, by the instant at which it was handed on, too. They also check that an outage is a refusal with the time until the next
attempt and never an error, except to those who ask a controller that is being killed.

Rows run in virtual time, over the engine, the coordinators and the escrows as they are shipped, unless the last column names a real server. Where a
row says nothing else, %d regions share %s units per window of %v, each is asked for %s in a second, messages take %v each
way and the hub sets aside blocks of %d %%. Where it names a part of a window's limit that is lost, each region is asked for %s in a second, more
than there is. A region has recovered when it serves %d %% and more of what it is asked for in every stretch of time from then on that is
as long as a window.

Rows with a real server prove what is lost in windows and holders, and not how long it takes, which depends on the machine: %q is there a
window that the coordinator refused to grant of, because it began before what it remembers.
`, regions, units(limit), time.Duration(window)*time.Microsecond, units(ease), way, blockPercent, units(press), whole, "not served")
}
