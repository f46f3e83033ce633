package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A shape is a Go type as JSON is decoded into it: which members it has, which of its
// values are quantities, and how much memory each of them takes.
type shape struct {
	leaf     bool // the type reads its JSON by itself
	quantity bool

	to   *shape // what a pointer leads to
	elem *shape // of a slice or a map
	each int    // bytes of what to or elem is, for one

	members []member // of a struct, in its order
	named   map[string]*shape
}

// A member is a field of a struct.
type member struct {
	name      string // in JSON; "" for a struct whose members are those of the struct around it
	index     int
	omitEmpty bool
	*shape
}

// shapeOf returns the shape of T.
func shapeOf[T any]() *shape {
	return shapes{}.of(reflect.TypeFor[T]())
}

// shapes holds those that are known, for types that occur more than once or in themselves.
type shapes map[reflect.Type]*shape

func (s shapes) of(t reflect.Type) *shape {
	if known, ok := s[t]; ok {
		return known
	}
	sh := &shape{}
	s[t] = sh
	const entry = 2 // times the memory of an entry: maps have room to spare
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		sh.leaf, sh.quantity = true, t == reflect.TypeFor[resource.Quantity]()
	case t.Kind() == reflect.Pointer:
		sh.to, sh.each = s.of(t.Elem()), int(t.Elem().Size())
	case t.Kind() == reflect.Slice:
		sh.elem, sh.each = s.of(t.Elem()), int(t.Elem().Size())
	case t.Kind() == reflect.Map:
		sh.elem, sh.each = s.of(t.Elem()), entry*int(t.Key().Size()+t.Elem().Size())
	case t.Kind() == reflect.Struct:
		sh.named = map[string]*shape{}
		s.addMembers(sh, t)
	}
	return sh
}

func (s shapes) addMembers(sh *shape, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct
		if name == "-" || !f.IsExported() && !inline {
			continue
		}
		m := member{index: i, omitEmpty: strings.Contains(options, "omitempty"), shape: s.of(f.Type)}
		if inline {
			maps.Copy(sh.named, m.named)
		} else {
			m.name = name
			if name == "" {
				m.name = f.Name
			}
			sh.named[m.name] = m.shape
		}
		sh.members = append(sh.members, m)
	}
}
