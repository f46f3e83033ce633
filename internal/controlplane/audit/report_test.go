package audit

import (
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// reportOf reads a report as the controller does.
func reportOf(in *fleetpb.LimitReport) Report {
	r := Report{
		Generation: in.GetGeneration(), Placed: in.PlacedTotal, Waiting: in.GetWaiting(),
		Totals: Totals{Admitted: in.GetAdmittedTotal(), Refused: in.GetRefusedTotal(), Unplaced: in.GetUnplacedTotal()},
	}
	for _, in := range in.GetWindows() {
		row := Row{
			Since: limiter.Instant(in.GetSinceMicros()), Final: in.GetFinal(), Age: time.Duration(in.GetAgeMicros()) * time.Microsecond,
			Admitted: in.GetAdmitted(), Refused: in.GetRefused(), Local: in.GetLocal(), LocalShare: in.GetLocalShare(),
			Keys: keysOf(in.GetKeys()),
		}
		row.Windows.N = len(in.GetWindows())
		for i, open := range in.GetWindows() {
			row.Windows.Open[i] = limiter.OpenWindow{Rate: limiter.Rate{
				Limit: open.GetRate().GetLimit(), Window: limiter.Micros(open.GetRate().GetWindowMicros()),
			}, Index: open.GetIndex()}
		}
		copy(row.Unlisted[:], in.GetUnlisted())
		r.Rows = append(r.Rows, row)
	}
	return r
}

func keysOf(in []*fleetpb.KeyCount) (out []KeyCount) {
	for _, k := range in {
		out = append(out, KeyCount{Hash: k.GetHash(), Admitted: k.GetAdmitted(), Refused: k.GetRefused()})
	}
	return out
}
