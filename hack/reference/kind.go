package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A section is an object within a kind.
type section struct {
	path   string
	schema *apiextensionsv1.JSONSchemaProps
}

// renderKind returns the page of a kind: a section for each object in it. An object with the
// same fields and rules as one before has none of its own.
func renderKind(definition *apiextensionsv1.CustomResourceDefinition) string {
	names, version := definition.Spec.Names, definition.Spec.Versions[0]
	root := version.Schema.OpenAPIV3Schema
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n`apiVersion: %s/%s`, short name `%s`. %s\n", names.Kind, definition.Spec.Group, version.Name, names.ShortNames[0], prose(root.Description))
	var todo []section
	for _, part := range []string{"spec", "status"} {
		props := root.Properties[part]
		todo = append(todo, section{part, &props})
	}
	var done []section
	for len(todo) > 0 {
		s := todo[0]
		done = append(done, s)
		inner := s.render(&b, done, todo)
		todo = append(inner, todo[1:]...)
	}
	return b.String()
}

// render writes a section, and returns those of the objects in it.
func (s section) render(b *strings.Builder, done, todo []section) (inner []section) {
	fmt.Fprintf(b, "\n## %s\n", s.path)
	if s.schema.Description != "" {
		fmt.Fprintf(b, "\n%s\n", prose(s.schema.Description))
	}
	b.WriteString("\n| field | type | default | |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		props := s.schema.Properties[name]
		object, path := objectOf(&props, s.path+"."+name)
		text := typeOf(&props)
		if object != nil {
			if same := find(append(slices.Clone(done), append(todo, inner...)...), object); same != "" {
				path = same
			} else {
				inner = append(inner, section{path, object})
			}
			text = fmt.Sprintf("[%s](#%s)", text, anchor(path))
		}
		if slices.Contains(s.schema.Required, name) {
			text += ", required"
		}
		fallback := ""
		if props.Default != nil {
			fallback = "`" + string(props.Default.Raw) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, text, fallback, prose(props.Description))
	}
	if rules := rulesOf(s.schema); len(rules) > 0 {
		fmt.Fprintf(b, "\nThe API server refuses what breaks one of these rules:\n\n- %s\n", strings.Join(rules, "\n- "))
	}
	return inner
}

// find returns the path of a section with the same fields and rules, or "".
func find(sections []section, object *apiextensionsv1.JSONSchemaProps) string {
	for _, s := range sections {
		if reflect.DeepEqual(s.schema.Properties, object.Properties) && reflect.DeepEqual(s.schema.XValidations, object.XValidations) {
			return s.path
		}
	}
	return ""
}

// objectOf returns the object that a field is, or that its entries are, and its path.
func objectOf(props *apiextensionsv1.JSONSchemaProps, path string) (*apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case props.Items != nil && props.Items.Schema != nil:
		return objectOf(props.Items.Schema, path+"[]")
	case len(props.Properties) > 0:
		return props, path
	default:
		return nil, path
	}
}

func typeOf(props *apiextensionsv1.JSONSchemaProps) string {
	text := props.Type
	switch {
	case props.XIntOrString:
		text = "integer or string"
	case len(props.Enum) > 0:
		var values []string
		for _, v := range props.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		text = strings.Join(values, ", ")
	case props.Items != nil && props.Items.Schema != nil:
		text = "list of " + typeOf(props.Items.Schema)
		if props.MaxItems != nil {
			text += fmt.Sprintf(", at most %d", *props.MaxItems)
		}
	case props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil:
		text = "map of " + typeOf(props.AdditionalProperties.Schema)
	case props.Minimum != nil && props.Maximum != nil:
		text += fmt.Sprintf(", %d to %d", int64(*props.Minimum), int64(*props.Maximum))
	case props.Minimum != nil:
		text += fmt.Sprintf(", at least %d", int64(*props.Minimum))
	}
	return text
}

// rulesOf returns the messages of the rules of an object and of its fields.
func rulesOf(props *apiextensionsv1.JSONSchemaProps) (rules []string) {
	add := func(name string, of *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range of.XValidations {
			text := prose(rule.Message)
			if at := strings.TrimPrefix(name+rule.FieldPath, "."); at != "" {
				text = "`" + at + "`: " + text
			}
			rules = append(rules, text)
		}
	}
	add("", props)
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		field := props.Properties[name]
		if object, _ := objectOf(&field, ""); object != &field {
			add(name, &field)
		}
		if field.Items != nil && field.Items.Schema != nil && len(field.Items.Schema.Properties) == 0 {
			add(name+"[]", field.Items.Schema)
		}
	}
	return rules
}

var escapes = strings.NewReplacer("\n", " ", "|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`, "{{", `{\{`)

// prose returns a description as Markdown on one line.
func prose(text string) string { return escapes.Replace(strings.TrimSpace(text)) }

// anchor returns the fragment by which a link reaches the heading of a section.
func anchor(path string) string {
	return strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(path))
}
