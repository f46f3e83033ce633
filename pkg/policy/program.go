package policy

import (
	"sync"

	"github.com/google/cel-go/cel"
)

// programs are the expressions that this process has compiled. To compile one takes
// as long as thousands of evaluations, and the same policy is validated for each pod
// that it selects.
var programs programCache

// maxPrograms bounds the memory of a cache: a full one begins anew.
const maxPrograms = 1024

// A programCache remembers what was compiled. Programs are for any number of
// goroutines.
type programCache struct {
	mu       sync.Mutex
	compiled map[programSource]cel.Program
}

type programSource struct{ text, kind string }

// of returns the program of an expression that has to have that type.
func (c *programCache) of(source string, want *cel.Type) (cel.Program, error) {
	name := programSource{source, want.String()}
	c.mu.Lock()
	program, ok := c.compiled[name]
	c.mu.Unlock()
	if ok {
		return program, nil
	}
	program, err := compileExpression(source, want) // others need not wait meanwhile
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiled == nil || len(c.compiled) >= maxPrograms {
		c.compiled = make(map[programSource]cel.Program)
	}
	c.compiled[name] = program
	return program, nil
}
