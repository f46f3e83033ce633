package policy

import (
	"sync"

	"github.com/google/cel-go/cel"
)

// A program is a compiled expression.
type program struct {
	cel.Program

	readsPath bool
}

// programs are the expressions that this process has compiled. To compile one takes
// as long as thousands of evaluations, and the same policy is validated for each pod
// that it selects.
var programs programCache

// maxPrograms bounds the memory of a cache: a full one begins again.
const maxPrograms = 1024

// A programCache remembers what was compiled. Programs are for any number of
// goroutines.
type programCache struct {
	mu       sync.Mutex
	compiled map[programSource]*program
}

type programSource struct{ text, kind string }

// of returns the program of an expression that has to have that type.
func (c *programCache) of(source string, want *cel.Type) (*program, error) {
	name := programSource{source, want.String()}
	c.mu.Lock()
	known, ok := c.compiled[name]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	compiled, err := compileExpression(source, want) // others need not wait meanwhile
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled == nil || len(c.compiled) >= maxPrograms {
		c.compiled = make(map[programSource]*program)
	}
	c.compiled[name] = compiled
	return compiled, nil
}
