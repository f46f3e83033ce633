// Command bench sets what a decision costs beside other Go rate limiters and
// beside what the machine cannot do faster, all in one run.
//
// The contenders of a case take turns, so a noisy moment meets all of them.
// Every figure is the median over the rounds, and every ratio the median of the
// rounds' ratios to the limit, with a 95 % interval. In memory, the limit is one
// atomic addition and one reading of the monotonic clock, behind a lookup in a
// plain Go map where the contenders are keyed; over a store it is the cheapest
// call that could decide anything.
//
// All contenders read the clock themselves for every request, as they do in
// production. Where they admit, their budget is large enough for every request
// of the run; where they refuse, it is spent. Their promises differ: in memory
// the others count in one process, and Weir spends the store's grants to this
// one.
//
// Proxies are compared by the processor time of their processes in a closed loop, which
// others on the machine disturb less than latency, and by latency in an open loop. The
// sidecars of other checkouts can take part: that shows what a change costs.
package main
