package fieldtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/dump"
)

// maxOthers is how many values of elsewhere are tried in a field.
const maxOthers = 8

// Matter fails the test for each field of S, and of the structs in it at any depth, that
// changes no output, and for each field of the output that no input changes. Every input is
// changed in one field at a time: to what other inputs have there, to a number beside it,
// or to nothing. A refused input shows nothing, unless all are refused. Ignored fields,
// such as "Limit.Key", are not looked at, nor are those below them. Inputs are changed and
// put back, so the function must not keep them.
func Matter[S any](t testing.TB, inputs []*S, function func(*S) (any, error), ignored ...string) {
	t.Helper()
	r := &run[S]{
		walk: walk{ignored: ignored}, function: function, matters: map[string]bool{},
		values: map[reflect.Type][]reflect.Value{}, first: map[string]string{}, varies: map[string]bool{},
	}
	for _, in := range inputs {
		r.visit(reflect.ValueOf(in).Elem(), r.collect)
	}
	for _, in := range inputs {
		before, err := r.made(in)
		if err != nil {
			t.Fatalf("an input is refused: %v", err)
		}
		r.visit(reflect.ValueOf(in).Elem(), func(name string, v reflect.Value) {
			if v.CanSet() && !r.matters[name] {
				r.matters[name] = r.changes(in, v, before)
			}
		})
	}
	all := map[string]bool{}
	r.fieldsOf(reflect.TypeFor[S](), all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !r.matters[name] {
			t.Errorf("%s: no value of it changes what is made; it is not copied, or no input has it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.varies)) {
		if !r.varies[name] {
			t.Errorf("%s: no input changes it; nothing is copied to it, or no input has that", name)
		}
	}
}

type run[S any] struct {
	walk
	function func(*S) (any, error)
	matters  map[string]bool
	values   map[reflect.Type][]reflect.Value // of leaves
	first    map[string]string                // by field of the output: its values when there were some first
	varies   map[string]bool                  // whether there were others later
}

// made returns what is made of an input. A panic refuses it: some fields are required.
func (r *run[S]) made(in *S) (made string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	out, err := r.function(in)
	if err == nil {
		r.vary(reflect.ValueOf(out))
	}
	return dump.ForHash(out), err
}

// vary notes which fields of the output are not always the same.
func (r *run[S]) vary(out reflect.Value) {
	values := map[string][]string{}
	r.visit(out, func(name string, v reflect.Value) {
		values[name] = append(values[name], dump.ForHash(v.Interface()))
	})
	r.fields(out, r.varies)
	for name, of := range values {
		slices.Sort(of)
		now := strings.Join(slices.Compact(of), "|")
		if first, met := r.first[name]; !met {
			r.first[name] = now
		} else if now != first {
			r.varies[name] = true
		}
	}
}

func (r *run[S]) collect(_ string, v reflect.Value) {
	known := r.values[v.Type()]
	if len(known) < maxOthers && !slices.ContainsFunc(known, func(k reflect.Value) bool { return reflect.DeepEqual(k.Interface(), v.Interface()) }) {
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		r.values[v.Type()] = append(known, own)
	}
}

// changes reports whether another value of a field of in makes something else.
func (r *run[S]) changes(in *S, v reflect.Value, before string) bool {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	defer v.Set(was)
	tries, refused := 0, 0
	for _, other := range append(beside(was), r.values[v.Type()]...) {
		if reflect.DeepEqual(other.Interface(), was.Interface()) {
			continue
		}
		v.Set(other)
		tries++
		switch after, err := r.made(in); {
		case err != nil:
			refused++
		case after != before:
			return true
		}
	}
	return tries > 0 && refused == tries
}

// beside returns the zero value and, of a number or a truth value, those next to it.
func beside(v reflect.Value) []reflect.Value {
	out := []reflect.Value{reflect.Zero(v.Type())}
	next := reflect.New(v.Type()).Elem()
	switch {
	case v.Kind() == reflect.Bool:
		next.SetBool(!v.Bool())
	case v.CanInt():
		next.SetInt(v.Int() + 1)
	case v.CanUint():
		next.SetUint(v.Uint() + 1)
	case v.Kind() == reflect.String:
		next.SetString(v.String() + "x")
	default:
		return out
	}
	return append(out, next)
}
