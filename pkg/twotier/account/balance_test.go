package account

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// second and minute are rates of different windows.
var (
	second = limiter.Rate{Limit: 100, Window: limiter.Second}
	minute = limiter.Rate{Limit: 100, Window: 60 * limiter.Second}
)

// window returns a charge to one window of the rate.
func inWindow(r limiter.Rate, index int64) Charge {
	return Charge{Windows: limiter.Windows{N: 1, Open: [limiter.MaxRates]limiter.OpenWindow{{Rate: r, Index: index}}}}
}

// atInstant returns the charge of a time-coupled grant.
func atInstant(at limiter.Instant) Charge {
	c := inWindow(second, int64(at)/int64(limiter.Second))
	c.At, c.ByTime = at, true
	return c
}

func TestHandReceives(t *testing.T) {
	w7, w8, other := inWindow(second, 7), inWindow(second, 8), inWindow(minute, 7)
	t7, t8, t9 := atInstant(7), atInstant(8), atInstant(9)
	for name, tc := range map[string]struct {
		hand      Balance
		grant     Grant
		carryOver bool
		want      Balance
		lost      Grant
	}{
		"a first grant": {
			grant: Grant{Credits: 5, Deadline: 200, Charge: w7},
			want:  Balance{Front: Grant{Credits: 5, Deadline: 200, Charge: w7}},
		},
		"a grant of the same windows joins": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w7}},
			grant: Grant{Credits: 5, Deadline: 200, Charge: w7},
			want:  Balance{Front: Grant{Credits: 7, Deadline: 200, Charge: w7}},
		},
		"a refusal changes nothing in the same windows": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w7}},
			grant: Grant{Deadline: 200, Charge: w7},
			want:  Balance{Front: Grant{Credits: 2, Deadline: 200, Charge: w7}},
		},
		"a late grant": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w8}},
			grant: Grant{Credits: 5, Deadline: 100, Charge: w7},
			want:  Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w8}},
			lost:  Grant{Credits: 5, Deadline: 100, Charge: w7},
		},
		"credits of windows that are over do not join": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 100, Charge: w7}},
			grant: Grant{Credits: 5, Deadline: 200, Charge: w8},
			want:  Balance{Front: Grant{Credits: 5, Deadline: 200, Charge: w8}},
		},
		"credits of other windows that are open do not join": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w7}},
			grant: Grant{Credits: 5, Deadline: 200, Charge: other},
			want:  Balance{Front: Grant{Credits: 5, Deadline: 200, Charge: other}},
			lost:  Grant{Credits: 2, Deadline: 190, Charge: w7},
		},
		"with carry-over they do, and nobody takes them back": {
			hand:      Balance{Front: Grant{Credits: 2, Deadline: 190, Charge: w7}},
			grant:     Grant{Credits: 5, Deadline: 200, Charge: w8},
			carryOver: true,
			want:      Balance{Front: Grant{Credits: 7, Deadline: 200, Carried: 2, Charge: w8}},
		},
		"what was carried stays so": {
			hand:      Balance{Front: Grant{Credits: 3, Deadline: 190, Carried: 4, Charge: w8}},
			grant:     Grant{Credits: 5, Deadline: 200, Charge: w8},
			carryOver: true,
			want:      Balance{Front: Grant{Credits: 8, Deadline: 200, Carried: 3, Charge: w8}},
		},
		"a grant by time waits behind an older one": {
			hand:  Balance{Front: Grant{Credits: 2, Deadline: 150, Charge: t7}},
			grant: Grant{Credits: 5, Deadline: 200, Charge: t8},
			want: Balance{
				Front: Grant{Credits: 2, Deadline: 150, Charge: t7},
				Back:  Grant{Credits: 5, Deadline: 200, Charge: t8},
			},
		},
		"of three grants by time the newest and the better of the others stay": {
			hand: Balance{
				Front: Grant{Credits: 2, Deadline: 150, Charge: t7},
				Back:  Grant{Credits: 3, Deadline: 160, Charge: t8},
			},
			grant: Grant{Credits: 5, Deadline: 200, Charge: t9},
			want: Balance{
				Front: Grant{Credits: 3, Deadline: 160, Charge: t8},
				Back:  Grant{Credits: 5, Deadline: 200, Charge: t9},
			},
			lost: Grant{Credits: 2, Deadline: 150, Charge: t7},
		},
		"a refusal by time gives nothing up": {
			hand: Balance{
				Front: Grant{Credits: 2, Deadline: 150, Charge: t7},
				Back:  Grant{Credits: 3, Deadline: 160, Charge: t8},
			},
			grant: Grant{Deadline: 200, Charge: t9},
			want: Balance{
				Front: Grant{Credits: 2, Deadline: 150, Charge: t7},
				Back:  Grant{Credits: 3, Deadline: 160, Charge: t8},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, lost := tc.hand.Receive(100, tc.grant, tc.carryOver)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the hand (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.lost, lost); diff != "" {
				t.Errorf("what is given up (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandCarriesOverNoMoreThanItMay(t *testing.T) {
	into := Grant{Deadline: 300, Charge: inWindow(second, 8)}
	for name, tc := range map[string]struct {
		front Grant
		most  int64
		want  Grant
	}{
		"while the window is open":  {Grant{Credits: 9, Deadline: 101}, 4, Grant{Credits: 9, Deadline: 101}},
		"as much as it may":         {Grant{Credits: 9, Deadline: 100}, 4, Grant{Credits: 4, Deadline: 300, Carried: 4, Charge: into.Charge}},
		"all that there is":         {Grant{Credits: 3, Deadline: 100}, 4, Grant{Credits: 3, Deadline: 300, Carried: 3, Charge: into.Charge}},
		"nothing with a batch of 1": {Grant{Credits: 1, Deadline: 100}, 0, Grant{Deadline: 300, Charge: into.Charge}},
		"never what dies by time": {
			Grant{Credits: 3, Deadline: 100, Charge: atInstant(7)}, 4, Grant{Credits: 3, Deadline: 100, Charge: atInstant(7)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Balance{Front: tc.front}.CarryOver(100, tc.most, into)
			if diff := cmp.Diff(tc.want, got.Front); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandGivesBackOnlyWhatItsWindowsWereCharged(t *testing.T) {
	for name, tc := range map[string]struct {
		holding Grant
		want    int64
	}{
		"what is left":                          {Grant{Credits: 5, Deadline: 200}, 5},
		"nothing of a window that is over":      {Grant{Credits: 5, Deadline: 100}, 0},
		"not what was carried in":               {Grant{Credits: 5, Carried: 2, Deadline: 200}, 3},
		"nothing when less is left than that":   {Grant{Credits: 2, Carried: 4, Deadline: 200}, 0},
		"credits by time, while they are alive": {Grant{Credits: 5, Deadline: 200, Charge: atInstant(7)}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.holding.Returnable(100).Credits; got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestRefundGoesToCreditsOfTheSameCharge(t *testing.T) {
	h := Balance{
		Front: Grant{Credits: 1, Deadline: 200, Charge: atInstant(7)},
		Back:  Grant{Credits: 1, Deadline: 300, Charge: atInstant(8)},
	}
	for name, tc := range map[string]struct {
		charge      Charge
		front, back int64
	}{
		"the front":                   {atInstant(7), 3, 1},
		"the back":                    {atInstant(8), 1, 3},
		"neither, of another instant": {atInstant(9), 1, 1},
		"neither, of a window":        {inWindow(second, 0), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := h.Refund(tc.charge, 2)
			if got.Front.Credits != tc.front || got.Back.Credits != tc.back || ok != (tc.front+tc.back > 2) {
				t.Errorf("%d in front, %d behind, %v", got.Front.Credits, got.Back.Credits, ok)
			}
		})
	}
}

// TestNoCreditOutlivesItsGrant plays with balances at random and follows every grant:
// what is spent of it is spent before its own deadline, and never exceeds it.
func TestNoCreditOutlivesItsGrant(t *testing.T) {
	for _, byTime := range []bool{false, true} {
		for seed := range uint64(200) {
			t.Run(fmt.Sprintf("byTime=%v, seed=%d", byTime, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				var h Balance
				var now, spent int64
				type grant struct{ deadline, left int64 }
				grants := map[Charge]*grant{}
				for range 400 {
					now += rng.Int64N(30)
					switch rng.IntN(3) {
					case 0:
						// The windows are 100 long, and a grant dies with them, or 80 later; its
						// answer is in progress for a while.
						c, dies := inWindow(second, now/100), now/100*100+100
						if byTime {
							c, dies = atInstant(limiter.Instant(now)), now+80
						}
						g := Grant{Credits: 1 + rng.Int64N(9), Deadline: dies - rng.Int64N(5), Charge: c}
						if grants[c] == nil {
							grants[c] = &grant{deadline: dies}
						}
						grants[c].left += g.Credits
						now += rng.Int64N(40)
						h, _ = h.Receive(now, g, false)
					default:
						next, c, ok := h.Spend(now, 1+rng.Int64N(3))
						if !ok {
							continue
						}
						cost := h.Front.Credits + h.Back.Credits - next.Front.Credits - next.Back.Credits
						h, spent = next, spent+cost
						g := grants[c]
						g.left -= cost
						if now >= g.deadline || g.left < 0 {
							t.Fatalf("at %d spent of a grant that died at %d and has %d left", now, g.deadline, g.left)
						}
						if rng.IntN(4) == 0 {
							if h, ok = h.Refund(c, cost); ok {
								g.left += cost
							}
						}
					}
				}
				if spent < 50 {
					t.Errorf("spent %d: the test tests little", spent)
				}
			})
		}
	}
}
