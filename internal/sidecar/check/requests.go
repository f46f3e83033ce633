package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
)

// maxLimits bounds how many limits one request names: the store may be read for each.
const maxLimits = 16

// parseAll reads a request about several limits: {"limits": [...]}, each as in a check,
// or an object that names one. None may be asked for the same counter as another.
func parseAll(body []byte) ([]enforce.Query, error) {
	one, several := enforce.Query{Cost: 1}, []enforce.Query(nil)
	alone := true
	err := readBody(body, func(field string, dec *json.Decoder) (err error) {
		if field == "limits" {
			several, err = readList(dec)
			return err
		}
		alone = false
		return readField(&one, field, dec, " and cost, or limits")
	})
	switch {
	case err != nil:
		return nil, err
	case several == nil:
		return []enforce.Query{one}, validate(one)
	case !alone:
		return nil, &fieldError{"limits", "stands beside other fields: put them into its objects"}
	default:
		return several, nil
	}
}

// readList reads the value of the field limits.
func readList(dec *json.Decoder) ([]enforce.Query, error) {
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil, &fieldError{"limits", "is not a list: send [" + example + "]"}
	}
	var all []enforce.Query
	for dec.More() {
		if len(all) == maxLimits {
			return nil, &fieldError{"limits", fmt.Sprintf("has more than %d objects: ask again for the others", maxLimits)}
		}
		q, err := readQuery(dec)
		if err != nil {
			return nil, within(len(all), err)
		}
		for i, other := range all {
			if sameCounter(other, q) {
				return nil, &fieldError{fmt.Sprintf("limits[%d]", len(all)), fmt.Sprintf("names the counter of limits[%d]: send the cost of both together", i)}
			}
		}
		all = append(all, q)
	}
	if _, err := dec.Token(); err != nil {
		return nil, invalid(err)
	}
	if len(all) == 0 {
		return nil, &fieldError{"limits", "is empty: send [" + example + "]"}
	}
	return all, nil
}

func sameCounter(a, b enforce.Query) bool {
	return a.Policy == b.Policy && a.Limit == b.Limit && a.Key == b.Key && slices.Equal(a.Parts, b.Parts) && a.Tenant == b.Tenant
}

// readQuery reads an object of the list.
func readQuery(dec *json.Decoder) (enforce.Query, error) {
	q := enforce.Query{Cost: 1}
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return q, &fieldError{"", "is not an object: send " + example}
	}
	err := readObject(dec, func(field string, dec *json.Decoder) error {
		return readField(&q, field, dec, " and cost")
	})
	if err != nil {
		return q, err
	}
	return q, validate(q)
}

// within names the field of the object at i of the list.
func within(i int, err error) error {
	wrong, ok := errors.AsType[*fieldError](err)
	if !ok {
		return err
	}
	field := fmt.Sprintf("limits[%d]", i)
	if wrong.field != "" {
		field += "." + wrong.field
	}
	return &fieldError{field, wrong.problem}
}
