package policy

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

func (m *Match) validate(errs *problems, path string) {
	errs.count(path+".methods", len(m.Methods), 0, MaxMatches)
	for i, method := range m.Methods {
		if !httpguts.ValidHeaderFieldName(method) {
			errs.add(path+entry(".methods", i), "is %q: write a method such as GET", method)
		}
	}
	errs.count(path+".paths", len(m.Paths), 0, MaxMatches)
	for i, match := range m.Paths {
		match.validate(errs, path+entry(".paths", i))
	}
	errs.count(path+".headers", len(m.Headers), 0, MaxMatches)
	for i, match := range m.Headers {
		match.validate(errs, path+entry(".headers", i))
	}
	m.validateDescriptors(errs, path+".descriptors")
}

func (m *Match) validateDescriptors(errs *problems, path string) {
	errs.count(path, len(m.Descriptors), 0, MaxMatches)
	if len(m.Descriptors) > 0 && len(m.Methods)+len(m.Paths)+len(m.Headers) > 0 {
		errs.add(path, "stand beside fields of HTTP requests, so nothing matches: move them to an entry of their own")
	}
	for i, d := range m.Descriptors {
		errs.text(entry(path, i)+".key", d.Key, 1)
		errs.text(entry(path, i)+".value", d.Value, 0)
	}
}

func (m PathMatch) validate(errs *problems, path string) {
	oneOf(errs, path+".type", m.Type, Exact, PathPrefix, RegularExpression)
	switch {
	case m.Type == RegularExpression:
		errs.pattern(path+".value", m.Value)
	case !strings.HasPrefix(m.Value, "/") || len(m.Value) > maxPattern:
		errs.add(path+".value", "is %q: a path starts with a slash and has at most %d bytes", m.Value, maxPattern)
	}
}

func (m HeaderMatch) validate(errs *problems, path string) {
	oneOf(errs, path+".type", m.Type, Exact, RegularExpression, Present)
	errs.header(path+".name", m.Name)
	switch {
	case m.Type == RegularExpression:
		errs.pattern(path+".value", m.Value)
	case m.Type == Present && m.Value != "":
		errs.add(path+".value", "is %q: type Present compares no value", m.Value)
	case len(m.Value) > maxPattern:
		errs.add(path+".value", "has more than %d bytes", maxPattern)
	}
}
