package plugin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/policy"
)

// podBypasses is the mode of a pod whose sidecar counts nothing.
const podBypasses = "bypass"

// explain asks a sidecar what becomes of a request.
func explain(ctx context.Context, from sidecar, r *http.Request) (*explanation, error) {
	config, err := from.config(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, unknown, err := policy.DecodeParts(config.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("the configuration in force cannot be read: %w; use the plugin of the sidecar's version", err)
	}
	set, err := policy.Compile(snapshot)
	if err != nil {
		return nil, err
	}
	request := policy.NewRequest(r)
	found := &explanation{Items: []explainRow{}}
	for _, part := range unknown {
		found.warnings = append(found.warnings, part.Error()+": it is left out here, use the plugin of the sidecar's version")
	}
	rows, err := judgeLimits(ctx, from, set, &request, config.Mode)
	if err != nil {
		return nil, err
	}
	answers := groupAnswers(set, rows)
	for _, l := range set.Limits {
		found.Items = append(found.Items, *rows[l])
	}
	for _, p := range set.Pools() {
		row := poolRow(p, &request, config)
		answers = append(answers, best([]*explainRow{&row}))
		found.Items = append(found.Items, row)
	}
	found.Answer = worst(answers)
	if config.Mode == podBypasses {
		found.Answer = admits
		found.warnings = append(found.warnings, "the mode of the pod is bypass, so nothing is counted or refused: take weir.dev/mode out of the pod template")
	}
	if len(found.Items) == 0 {
		found.warnings = append(found.warnings, "the sidecar has no policies and pools: kubectl weir status says whether some select the pod")
	}
	return found, nil
}

// judgeLimits returns the row of each limit.
func judgeLimits(ctx context.Context, from sidecar, set *policy.Set, r *policy.Request, mode string) (map[*policy.CompiledLimit]*explainRow, error) {
	rows := make(map[*policy.CompiledLimit]*explainRow)
	var questions []question
	var asked []*explainRow
	for _, l := range set.Limits {
		row := &explainRow{Object: "ratelimitpolicy/" + l.Policy.Name, Limit: l.Limit.Name, shadow: mode != "enforce" || l.Shadow()}
		rows[l] = row
		row.Result, row.Value, row.Hash, row.Cost = count(l, r)
		parts := l.Parts(r)
		switch {
		case row.Result == "rejected":
			row.Answer, row.Reason = refuses, row.passing("a part of the key is missing")
		case row.Result != "counted":
		case l.Limit.Key != nil && parts == nil:
			row.Answer, row.Reason = unclear, "requests without the key share a counter, which a sidecar cannot be asked about"
		default:
			questions = append(questions, question{Policy: l.Policy.Name, Limit: l.Limit.Name, Key: parts, Tenant: l.TenantName(r), Cost: *row.Cost})
			asked = append(asked, row)
		}
	}
	answers, err := from.peek(ctx, questions)
	if err != nil {
		return nil, err
	}
	for i, row := range asked {
		row.take(&answers[i])
	}
	return rows, nil
}

// passing adds to a reason of a refusal that it has no effect in Shadow.
func (r *explainRow) passing(reason string) string {
	if r.shadow {
		return reason + "; in Shadow, so the request passes"
	}
	return reason
}

// take notes what the sidecar answers.
func (r *explainRow) take(p *peeked) {
	r.Left, r.Of, r.ResetAfterMs = &p.Remaining, &p.Limit, &p.ResetAfterMs
	r.shadow = p.Shadow
	var reasons []string
	switch {
	case p.Source == "Bypass":
		r.Answer = admits
		return
	case p.Reason == "":
		r.Answer = admits
	case p.RetryAfterMs > 0:
		r.Answer = refuses
		reasons = append(reasons, r.passing(p.Reason+" for "+short(p.RetryAfterMs)))
	default:
		r.Answer = refuses
		reasons = append(reasons, r.passing(p.Reason))
	}
	if p.Unread != "" {
		reasons = append(reasons, "LEFT is of this pod alone, as the store was not read: "+p.Unread)
	}
	if p.Shared {
		reasons = append(reasons, "there is no room for a counter of the value, so it shares one")
	}
	if p.Source != "Lease" && p.Source != "Store" {
		reasons = append(reasons, p.Source+" decides")
	}
	r.Reason = strings.Join(reasons, "; ")
}

// groupAnswers returns the answer of each group of limits. One limit of a group has to admit the request.
func groupAnswers(set *policy.Set, rows map[*policy.CompiledLimit]*explainRow) []string {
	var answers []string
	for _, group := range set.Groups() {
		var say []*explainRow
		for _, l := range group {
			say = append(say, rows[l])
		}
		answers = append(answers, best(say))
	}
	return answers
}

// best returns the answer of alternatives: the most favourable of those that have a say.
func best(rows []*explainRow) string {
	answer := ""
	for _, row := range rows {
		switch {
		case row.Answer == "":
		case row.Answer == admits, row.shadow:
			return admits
		case row.Answer == unclear, answer == "":
			answer = row.Answer
		}
	}
	return answer
}

// worst returns the answer of a pod whose limits and pools all have to admit a request.
func worst(answers []string) string {
	switch {
	case slices.Contains(answers, refuses):
		return refuses
	case slices.Contains(answers, unclear):
		return unclear
	default:
		return admits
	}
}

// ofKey stands in the place of a limit's name for the limit per key of a pool.
const ofKey = "(per key)"

// poolRow returns the row of a pool, or of its limit per key: of every value as much is left as
// of the one that has the most in flight, at least.
func poolRow(p *policy.CompiledPool, r *policy.Request, config *sidecarConfig) explainRow {
	object, perKey := policy.PoolName(p.Pool.Name)
	row := explainRow{Object: "concurrencypool/" + object, Result: "unmatched", shadow: config.Mode != "enforce" || p.Shadow()}
	if perKey {
		row.Limit = ofKey
	}
	if p.Exempt(r) {
		return row
	}
	row.Result = "counted"
	switch value, outcome, _ := p.Value(r); {
	case outcome == policy.Skipped:
		row.Result = "skipped"
		return row
	case outcome == policy.Rejected:
		row.Result, row.Answer, row.Reason = "rejected", refuses, row.passing("a part of the key is missing")
		return row
	case perKey && value == policy.MissingValue():
		row.Value = new("(missing)")
	case perKey:
		row.Value = &value
	}
	if i := p.Partition(r); i != slots.Rest {
		row.Limit = p.Pool.Partitions[i].Name
	}
	at := slices.IndexFunc(config.Pools, func(s sidecarPool) bool { return s.Name == p.Pool.Name })
	if at < 0 {
		row.Answer, row.Reason = unclear, "the sidecar has not begun to take part in it"
		return row
	}
	s := &config.Pools[at]
	row.Left, row.Of = new(max(0, s.Ceiling-s.InFlight)), new(s.Share)
	switch {
	case *row.Left > 0:
		row.Answer = admits
	case perKey && s.Share > 0:
		row.Left = nil // of the value that has the most, which need not be this one
		then := "refuses the request"
		if p.Pool.Queue != nil {
			then = "lets the request wait in the queue of the key, or refuses it,"
		}
		row.Answer, row.Reason = unclear, row.passing("the pod has its part of the limit in flight of a value of the key, and "+then+" if it has this one")
	case s.Share == 0:
		row.Answer, row.Reason = refuses, row.passing("the pod has no share of the pool now")
	default:
		row.Answer, row.Reason = unclear, row.passing("no slot of the pod is free, so the request waits in the queue or is refused")
	}
	return row
}
