package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// table asks for objects of the shop as kubectl does: for a table with the objects in
// its rows.
func (s *site) table(ctx context.Context, resource string) (*metav1.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	raw, err := s.cluster.Clients.RESTClient().Get().
		AbsPath("/apis/weir.dev/v1alpha1/namespaces", namespace, resource).
		Param("includeObject", "Object").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	table := &metav1.Table{}
	return table, json.Unmarshal(raw, table)
}

// render prints the columns that kubectl shows without -o wide, "" without rows.
func render(table *metav1.Table) string {
	if len(table.Rows) == 0 {
		return ""
	}
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
