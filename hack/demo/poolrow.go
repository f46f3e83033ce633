package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// A row is what happened in a short time, as the load generator and the backend
// counted it, and the limit that the sidecars reported at its end.
type row struct {
	at                       time.Time
	takes                    time.Duration // a thread of the backend, for a request
	offered, refused, failed int64
	served                   int           // of the requests that reached the backend, those that were finished soon
	p99                      time.Duration // of those
	peak                     int64         // in flight at the backend
	limit                    int64         // of the pool; 0: there is none, or no sidecar knows of it
}

// observe returns the row that was over a row's length ago: by now most of its
// requests are answered.
func (d *poolShow) observe(ctx context.Context, now time.Time) row {
	from := now.Add(-2 * rowLength).Truncate(100 * time.Millisecond)
	to := from.Add(rowLength)
	sum := func(kind func(*traffic.Outcomes) *traffic.Series) int64 { return d.load.Sum(from, to, kind) }
	r := row{
		at: from, takes: d.takes,
		offered: sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Offered }),
		refused: sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Refused }),
		failed:  sum(func(o *traffic.Outcomes) *traffic.Series { return &o.Failed }),
		peak:    d.backend.Peak(from, to),
	}
	r.served, r.p99 = d.backend.Served(from, to, 0.99)
	for _, p := range d.pods {
		r.limit = max(r.limit, p.Limit)
	}
	d.pods, d.takes = d.askPods(ctx), d.backend.Service()
	return r
}

const rowHeader = "time\ta request takes\toffered/s\tserved/s\trefused/s\tfailed/s\tp99\tin flight at most\tlimit\t"

func (r *row) print(w io.Writer) {
	perSecond := func(n int64) int64 { return n * int64(time.Second) / int64(rowLength) }
	limit, p99 := "none", "-"
	if r.limit > 0 {
		limit = fmt.Sprint(r.limit)
	}
	if r.served > 0 {
		p99 = fmt.Sprintf("%d ms", r.p99.Milliseconds())
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%s\t\n", r.at.Format(time.TimeOnly), r.takes,
		perSecond(r.offered), perSecond(int64(r.served)), perSecond(r.refused), perSecond(r.failed), p99, r.peak, limit)
}

func rowTable(out io.Writer, rows []row) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, rowHeader)
	for i := range rows {
		rows[i].print(w)
	}
	_ = w.Flush()
}
