// Command bench sets the cost of a local decision beside that of other Go rate
// limiters and beside what the machine cannot do faster, all in one run, and
// prints one table.
//
// The contenders of a case take turns, so a noisy moment meets all of them.
// Every figure is the median over the rounds, and every ratio the median of the
// rounds' ratios to the limit, with a 95 % interval. The limit is one atomic
// addition and one reading of the monotonic clock, behind a lookup in a plain Go
// map where the contenders are keyed.
//
// All contenders read the clock themselves for every request, as they do in
// production. Where they admit, their budget is large enough for every request
// of the run; where they refuse, it is spent. What they promise differs: the
// others count in one process, Weir spends what the store granted to this one.
package main
