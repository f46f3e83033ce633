package check

import "github.com/weir-dev/weir/internal/sidecar/enforce"

// The values of arrival.Admitted.
const (
	now     = "Now"
	later   = "Later"
	never   = "Never"
	unknown = "Unknown" // the store could not be read, or does not say
)

func previewOf(all []enforce.Outlook) preview {
	p, hopeless := preview{Allowed: true, Limits: make([]peeked, len(all))}, false
	for i := range all {
		o, of := &all[i], &p.Limits[i]
		*of = peeked{answer: answerOf(o.Decision), known: knownOf(o)}
		if passes(o) {
			of.Allowed, of.RetryAfterMs = true, 0
			continue
		}
		if o.Never {
			of.RetryAfterMs = 0
		}
		p.Allowed, hopeless = false, hopeless || of.RetryAfterMs == 0
		p.RetryAfterMs = max(p.RetryAfterMs, of.RetryAfterMs)
	}
	if hopeless {
		p.RetryAfterMs = 0
	}
	return p
}

func prospectOf(all []enforce.Outlook) prospect {
	p := prospect{arrival: arrivalOf(now, 0), Limits: make([]forecast, len(all))}
	for i := range all {
		o := &all[i]
		p.Limits[i] = forecast{
			arrival: arrivalAt(o), Remaining: o.Remaining, FullAfterMs: millis(o.ResetAfter), known: knownOf(o),
		}
		if o.Allowed && !o.Shadow {
			p.Limits[i].DelayMs = millis(o.Delay)
		}
		p.arrival = p.and(p.Limits[i].arrival)
	}
	return p
}

// passes reports whether the limit lets what the query is about pass.
func passes(o *enforce.Outlook) bool { return o.Allowed || o.Shadow }

// arrivalAt returns when one limit admits the cost.
func arrivalAt(o *enforce.Outlook) arrival {
	switch {
	case passes(o):
		return arrivalOf(now, 0)
	case o.Never:
		return arrival{Admitted: never}
	case o.Undecided() || o.RetryAfter <= 0:
		return arrival{Admitted: unknown}
	default:
		return arrivalOf(later, millis(o.RetryAfter))
	}
}

func arrivalOf(when string, after int64) arrival { return arrival{Admitted: when, AfterMs: &after} }

// and returns when both have come: what will never be outweighs what is not known, and that
// outweighs every time.
func (a arrival) and(b arrival) arrival {
	switch {
	case a.Admitted == never || b.Admitted == never:
		return arrival{Admitted: never}
	case a.Admitted == unknown || b.Admitted == unknown:
		return arrival{Admitted: unknown}
	case *b.AfterMs > *a.AfterMs:
		return b
	default:
		return a
	}
}

func knownOf(o *enforce.Outlook) known {
	k := known{Credits: o.Credits, Source: o.Source.String(), Shared: o.Shared, Shadow: o.Shadow}
	if !o.Allowed {
		k.Reason = o.Reason.String()
	}
	switch {
	case o.Bypass:
		k.Source = "Bypass"
	case o.Unread != nil:
		k.Unread = o.Unread.Error()
	default:
		age := millis(o.Age)
		k.StoreAgeMs = &age
	}
	return k
}
