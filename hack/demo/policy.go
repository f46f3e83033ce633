package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// policyView is the policy as the API server shows it.
type policyView struct {
	limit   int64
	window  time.Duration
	perTrip string // requests decided per round trip to the store, as the status has it
	table   string // what `kubectl get ratelimitpolicies` prints
}

// readPolicy asks as kubectl does: for a table with the object in its row.
func (d *demo) readPolicy(ctx context.Context) (policyView, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	raw, err := d.cluster.Clients.RESTClient().Get().
		AbsPath("/apis/weir.dev/v1alpha1/namespaces/shop/ratelimitpolicies/checkout").
		Param("includeObject", "Object").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(ctx)
	if err != nil {
		return policyView{}, err
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return policyView{}, err
	}
	if len(table.Rows) != 1 {
		return policyView{}, errors.New("the API server returned no row")
	}
	var policy v1alpha1.RateLimitPolicy
	if err := json.Unmarshal(table.Rows[0].Object.Raw, &policy); err != nil {
		return policyView{}, err
	}
	rate := policy.Spec.Limits[0].Rates[0]
	window, err := time.ParseDuration(string(rate.Window))
	if err != nil {
		return policyView{}, err
	}
	return policyView{limit: rate.Limit, window: window, perTrip: policy.Status.Summary.RequestsPerRoundTrip, table: render(&table)}, nil
}

// render prints the columns that kubectl shows without -o wide.
func render(table *metav1.Table) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	line := func(cell func(int) string) {
		var cells []string
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 {
				cells = append(cells, cell(i))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return strings.ToUpper(table.ColumnDefinitions[i].Name) })
	for _, row := range table.Rows {
		line(func(i int) string {
			if row.Cells[i] == nil {
				return ""
			}
			return fmt.Sprint(row.Cells[i])
		})
	}
	_ = w.Flush()
	return b.String()
}
