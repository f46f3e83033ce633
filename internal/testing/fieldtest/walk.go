package fieldtest

import (
	"reflect"
	"slices"
)

// A walk goes through values and the types of their fields.
type walk struct{ ignored []string }

// visit calls f for every field that is there, at any depth.
func (w walk) visit(v reflect.Value, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name, looked := w.name(v.Type(), i); looked {
				f(name, v.Field(i))
				w.visit(v.Field(i), f)
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.visit(v.Elem(), f)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.visit(v.Index(i), f)
		}
	default: // it has no fields
	}
}

// name returns the name of a field, and whether it is looked at.
func (w walk) name(of reflect.Type, i int) (string, bool) {
	name := of.Name() + "." + of.Field(i).Name
	return name, of.Field(i).IsExported() && !slices.Contains(w.ignored, name)
}

// fields adds every field that the value has or may have, at any depth, unless it is there.
func (w walk) fields(v reflect.Value, all map[string]bool) {
	switch v.Kind() {
	case reflect.Interface:
		w.fields(v.Elem(), all)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Interface {
			w.fieldsOf(v.Type(), all)
			return
		}
		for i := range v.Len() {
			w.fields(v.Index(i), all)
		}
	case reflect.Invalid: // of nothing
	default:
		w.fieldsOf(v.Type(), all)
	}
}

// fieldsOf adds every field of a type, at any depth, unless it is there.
func (w walk) fieldsOf(of reflect.Type, all map[string]bool) {
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			name, looked := w.name(of, i)
			if _, added := all[name]; looked && !added {
				all[name] = false
				w.fieldsOf(of.Field(i).Type, all)
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		w.fieldsOf(of.Elem(), all)
	default: // it has no fields
	}
}
