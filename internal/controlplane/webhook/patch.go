package webhook

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
)

var podShape = shapeOf[corev1.Pod]()

// patch returns the operations that make the one pod the other. Nothing is encoded but what
// differs, so what it costs beyond one comparison follows from how much that is.
//
// Both have gone through these types, so members of a newer Kubernetes, which they do not
// know, are in no operation and stay as they are.
func patch(before, after *corev1.Pod) []jsonpatch.JsonPatchOperation {
	d := differ{}
	d.members(podShape, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
	return d.operations
}

// A differ compares two values. The path is that of what it compares.
type differ struct {
	path       []byte
	operations []jsonpatch.JsonPatchOperation
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// at does something with the path of a part.
func (d *differ) at(part string, do func()) {
	n := len(d.path)
	d.path = append(append(d.path, '/'), pointerEscapes.Replace(part)...)
	do()
	d.path = d.path[:n]
}

func (d *differ) add(operation string, value any) {
	d.operations = append(d.operations, jsonpatch.NewOperation(operation, string(d.path), value))
}

func (d *differ) members(sh *shape, a, b reflect.Value) {
	for _, m := range sh.members {
		if m.name == "" {
			d.members(m.shape, a.Field(m.index), b.Field(m.index))
			continue
		}
		d.at(m.name, func() { d.value(m.shape, a.Field(m.index), b.Field(m.index), m.omitEmpty) })
	}
}

// value compares two values of an object. An empty one that is optional is not in the JSON.
// To add one that is there replaces it.
func (d *differ) value(sh *shape, a, b reflect.Value, optional bool) {
	switch {
	case sh.members != nil && !sh.leaf:
		d.members(sh, a, b)
	case empty(b) && empty(a):
	case empty(b) && optional:
		d.add("remove", nil)
	case sh.to != nil && !empty(a) && !empty(b):
		if a.Pointer() != b.Pointer() {
			d.value(sh.to, a.Elem(), b.Elem(), false)
		}
	case a.Kind() == reflect.Map && !sh.leaf && !empty(a):
		d.entries(sh.elem, a, b)
	case a.Kind() == reflect.Slice && !sh.leaf && !empty(a) && a.Len() <= b.Len():
		d.elements(sh.elem, a, b)
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		d.add("add", b.Interface())
	}
}

// empty reports whether encoding/json leaves v out where that is allowed.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

func (d *differ) entries(sh *shape, a, b reflect.Value) {
	for _, key := range keys(a, b) {
		k := reflect.ValueOf(key).Convert(a.Type().Key())
		was, is := a.MapIndex(k), b.MapIndex(k)
		d.at(key, func() {
			switch {
			case !is.IsValid():
				d.add("remove", nil)
			case !was.IsValid():
				d.add("add", is.Interface())
			default:
				d.value(sh, was, is, false)
			}
		})
	}
}

// keys returns the keys that one of the two has, sorted.
func keys(a, b reflect.Value) []string {
	all := map[string]bool{}
	for _, m := range []reflect.Value{a, b} {
		for it := m.MapRange(); it.Next(); {
			all[it.Key().String()] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// elements compares two lists. The second has some more in one place, which is the first
// where the names differ, or the end.
func (d *differ) elements(sh *shape, a, b reflect.Value) {
	more := b.Len() - a.Len()
	place := 0
	for place < a.Len() && (more == 0 || nameOf(sh, a.Index(place)) == nameOf(sh, b.Index(place))) {
		place++
	}
	for i := range a.Len() {
		other := i
		if i >= place {
			other += more
		}
		d.at(strconv.Itoa(i), func() { d.element(sh, a.Index(i), b.Index(other)) })
	}
	for i := place; i < place+more; i++ {
		d.at(strconv.Itoa(i), func() { d.add("add", b.Index(i).Interface()) })
	}
}

// element compares two elements of a list, to which an element is added with the
// operation add, and not replaced.
func (d *differ) element(sh *shape, a, b reflect.Value) {
	if sh.members != nil && !sh.leaf {
		d.members(sh, a, b)
	} else if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		d.add("replace", b.Interface())
	}
}

// nameOf returns what distinguishes the elements of a list.
func nameOf(sh *shape, v reflect.Value) string {
	for _, m := range sh.members {
		if m.name == "name" {
			return v.Field(m.index).String()
		}
	}
	return ""
}
