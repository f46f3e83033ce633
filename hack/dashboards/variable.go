package main

// ofNamespaces lets the reader choose namespaces, at first all.
func ofNamespaces() variable {
	return choice("namespace", "Namespace", `label_values(weir_condition, namespace)`)
}

// ofNamespace lets the reader choose a namespace.
func ofNamespace() variable {
	v := ofNamespaces()
	v.Multi, v.IncludeAll, v.AllValue, v.Current = false, false, "", nil
	return v
}

// choice lets the reader choose several values, at first all. Without names, as with
// --policy-metrics=Namespace, all are the empty one, which the value for all matches.
func choice(name, label, query string) variable {
	return variable{
		Name: name, Label: label, Type: "query", Datasource: prometheus, Query: query, Refresh: 2, Sort: 1,
		IncludeAll: true, Multi: true, AllValue: ".*", Current: map[string]any{"text": "All", "value": "$__all"},
	}
}
