package policy

import (
	"encoding/json"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The variables of expressions.
const (
	varMethod   = "request.method"
	varPath     = "request.path" // a reading of it
	varHost     = "request.host" // in lower case, without a port
	varClientIP = "request.clientIP"
	varHeaders  = "request.headers" // by name in lower case
	varQuery    = "request.query"   // first values
	varJWT      = "request.jwt"     // claims of the bearer token, which nobody verified
)

// variables resolve the variables of one evaluation, each when it is read.
type variables struct {
	facts  *facts
	path   string
	client *clientFinder
}

// ResolveName returns a variable by its whole name.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case varMethod:
		return v.facts.http.Method, true
	case varPath:
		return v.path, v.path != unreadable
	case varHost:
		return hostOf(v.facts.http.Host), true
	case varClientIP:
		return v.client.text(v.facts.http), true
	case varHeaders:
		return v.facts.headerMap(), true
	case varQuery:
		return v.facts.queryMap(), true
	case varJWT:
		return v.facts.claims(source{header: defaultTokenHeader}), true
	default:
		return nil, false
	}
}

// Parent returns nil: there are no other variables.
func (*variables) Parent() cel.Activation { return nil }

// An adapter gives expressions the values of JSON: numbers are whole where they are
// written so.
type adapter struct{ types.Adapter }

// NativeToValue converts a value that claims may have.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return types.Int(whole)
		}
		number, err := v.Float64()
		if err != nil {
			return types.WrapErr(err)
		}
		return types.Double(number)
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	default:
		return a.Adapter.NativeToValue(value)
	}
}

// sizes are what the cost of an expression is estimated by, before any request is
// known. A request that is larger may exceed what an evaluation may cost.
type sizes struct{}

const (
	assumedText    = 256 // characters of a value
	assumedEntries = 32  // of a map or a list
)

// EstimateSize returns how large a value may be.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	switch element.Type().Kind() {
	case types.MapKind, types.ListKind:
		return &checker.SizeEstimate{Min: 0, Max: assumedEntries}
	default:
		return &checker.SizeEstimate{Min: 0, Max: assumedText}
	}
}

// EstimateCallCost leaves the cost of functions to the estimator, which knows the
// standard ones.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
