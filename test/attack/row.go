package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// An actor is somebody who attacks, by what they can do.
type actor int

const (
	editor    actor = iota // may edit what is in one namespace: pods, policies, pools and budgets
	container              // runs a program in a container of an app
	outside                // is a client of an app
	stranger               // is some other pod of the cluster
	member                 // is another cluster of a budget
)

// String returns the actor as the page names it.
func (a actor) String() string {
	return [...]string{"editor of a namespace", "container of an app", "client", "another pod", "member of a budget"}[a]
}

// A row is an attack.
type row struct {
	name string
	as   actor
	do   func(context.Context, *world) (answer string, err error) // an error is one of the suite's
	must must
	long bool // it takes seconds, and is left out of the short run
}

// A must is what has to be so after an attack.
type must struct {
	words    string
	has, not []string // parts of the answer
	oneOf    []string // parts: it has one of them; empty: not judged
}

// be is a must whose answer has all parts.
func be(words string, parts ...string) must { return must{words: words, has: parts} }

// without adds parts that the answer must not have.
func (m must) without(parts ...string) must {
	m.not = append(slices.Clone(m.not), parts...)
	return m
}

// or is a must whose answer has one of the parts, or more.
func or(words string, parts ...string) must { return must{words: words, oneOf: parts} }

// judge returns what is wrong with an answer.
func (m must) judge(answer string) error {
	for _, part := range m.has {
		if !strings.Contains(answer, part) {
			return fmt.Errorf("the answer lacks %q: %s", part, brief(answer))
		}
	}
	for _, part := range m.not {
		if strings.Contains(answer, part) {
			return fmt.Errorf("the answer has %q: %s", part, brief(answer))
		}
	}
	if len(m.oneOf) > 0 && !slices.ContainsFunc(m.oneOf, func(part string) bool { return strings.Contains(answer, part) }) {
		return fmt.Errorf("the answer has none of %q: %s", m.oneOf, brief(answer))
	}
	return nil
}

// brief shortens an answer for a person to read.
func brief(answer string) string {
	const most = 600
	if len(answer) > most {
		return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(answer[:most], "?"), len(answer))
	}
	return fmt.Sprintf("%q", answer)
}

// A group is attacks of one kind.
type group struct {
	name  string // in ATTACK_GROUPS
	title string
	rows  []row
}

// groups returns all rows.
func groups() []group {
	return []group{
		{"webhook", "What the webhooks read", webhookRows()},
		{"injection", "Injection", injectionRows()},
		{"objects", "Fields of objects", objectRows()},
		{"stream", "The fleet's port", streamRows()},
		{"budgets", "Budgets and their hub", budgetRows()},
		{"http1", "HTTP/1.1", http1Rows()},
		{"http2", "HTTP/2 and resources", http2Rows()},
	}
}
