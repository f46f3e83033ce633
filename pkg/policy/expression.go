package policy

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Bounds of an expression.
const (
	maxExpression = 1024 // characters

	// maxCost is the most that an evaluation may cost, in units of the Common
	// Expression Language, and the most that it may be estimated to cost.
	maxCost = 10_000
)

// environment is what expressions are compiled in: the standard functions, and the
// variables that are an evaluation's.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	text := cel.MapType(cel.StringType, cel.StringType)
	return cel.NewEnv(
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(50),
		cel.Variable(varMethod, cel.StringType),
		cel.Variable(varPath, cel.StringType),
		cel.Variable(varHost, cel.StringType),
		cel.Variable(varClientIP, cel.StringType),
		cel.Variable(varHeaders, text),
		cel.Variable(varQuery, text),
		cel.Variable(varJWT, cel.MapType(cel.StringType, cel.DynType)),
	)
})

// ValidateCondition reports why source is not an expression that says whether a request
// matches.
func ValidateCondition(source string) error {
	_, err := programs.of(source, cel.BoolType)
	return err
}

// ValidateValue reports why source is not an expression whose value requests are counted
// by.
func ValidateValue(source string) error {
	_, err := programs.of(source, cel.StringType)
	return err
}

// cures say what to do about an expression of another type.
var cures = map[string]string{
	cel.BoolType.String():   "compare it with a value, as in request.jwt.admin == true",
	cel.StringType.String(): "convert it, as in string(request.jwt.sub)",
}

func compileExpression(source string, want *cel.Type) (*program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("set up the expression language: %w", err)
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, explain(issues)
	}
	if !ast.OutputType().IsExactType(want) {
		return nil, fmt.Errorf("is of type %s, not %s: %s", ast.OutputType(), want, cures[want.String()])
	}
	estimate, err := env.EstimateCost(ast, sizes{})
	if err != nil {
		return nil, fmt.Errorf("has no cost that could be estimated: %w", err)
	}
	if estimate.Max > maxCost {
		return nil, fmt.Errorf("may cost %d units for one request, more than %d: avoid nested searches such as exists(… exists(…))", estimate.Max, maxCost)
	}
	evaluated, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("cannot be evaluated: %w", err)
	}
	return &program{Program: evaluated, readsPath: reads(ast, varPath)}, nil
}

// reads reports whether an expression mentions a variable. The checker notes what each
// name in it stands for, with a dot in front where a macro's variable would hide it.
func reads(ast *cel.Ast, variable string) bool {
	for _, reference := range ast.NativeRep().ReferenceMap() {
		if strings.TrimPrefix(reference.Name, ".") == variable {
			return true
		}
	}
	return false
}

// explain returns what is wrong with an expression, in one line.
func explain(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return fmt.Errorf("is not an expression over request.method, path, host, clientIP, headers, query and jwt: character %d: %s",
		first.Location.Column()+1, first.Message)
}

// A condition is an expression that is true or false.
type condition struct {
	program *program
	how     matching
}

func compileCondition(source string, how matching) (*condition, error) {
	compiled, err := programs.of(source, cel.BoolType)
	return &condition{program: compiled, how: how}, err
}

// matches reports whether the expression is true of r when its path is read so. It has
// no value when r lacks what it reads, or is so large that reading it costs too much.
func (c *condition) matches(r *Request, path string) bool {
	value, _, err := c.program.Eval(&variables{facts: r.known(), path: path, client: &c.how.client})
	if err != nil {
		return c.how.unknown
	}
	return value == types.True
}

// evaluate returns the value of an expression that is a string, empty when it has none.
func evaluate(p *program, r *Request, client *clientFinder) string {
	value, _, err := p.Eval(&variables{facts: r.known(), path: r.path, client: client})
	if err != nil {
		return ""
	}
	text, _ := value.(types.String)
	return string(text)
}

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
