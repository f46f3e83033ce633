package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/pkg/jwt"
)

// claimAt returns the claim at a path, nil when there is none. The names of nested
// claims are joined by dots, and a name that has dots itself goes before.
func claimAt(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if nested, ok := claims[path[:i]].(map[string]any); ok {
			if value := claimAt(nested, path[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// claimText returns what a claim of one value is compared and counted by: a string, a
// number as it is written, true or false. Lists and objects have no such text.
func claimText(claim any) (string, bool) {
	switch value := claim.(type) {
	case string:
		return value, true
	case json.Number:
		return value.String(), true
	case bool:
		return strconv.FormatBool(value), true
	default:
		return "", false
	}
}

// A claimMatcher compares a claim of a token.
type claimMatcher struct {
	namedMatcher

	of source
}

func compileClaim(m ClaimMatch, by verifiers) (claimMatcher, error) {
	value, err := compileValue(m.Type, m.Value)
	return claimMatcher{namedMatcher{value, m.Claim}, source{http.CanonicalHeaderKey(m.Header), by[m.Provider]}}, err
}

// matches reports whether the claim, or one of the entries of a claim that is a list,
// matches.
func (m *claimMatcher) matches(claims map[string]any) bool {
	claim := claimAt(claims, m.name)
	if claim == nil {
		return false
	}
	if m.kind == Present {
		return true
	}
	if list, ok := claim.([]any); ok {
		return slices.ContainsFunc(list, m.matchesText)
	}
	return m.matchesText(claim)
}

func (m *claimMatcher) matchesText(claim any) bool {
	text, ok := claimText(claim)
	return ok && m.valueMatcher.matches(text)
}

func (p *problems) claim(path, value string) {
	if value == "" || len(value) > maxPattern || strings.HasPrefix(value, ".") || strings.HasSuffix(value, ".") {
		p.add(path, "is %q: write the path of a claim such as sub or realm.roles, of at most %d bytes", value, maxPattern)
	}
}

// defaultTokenHeader carries tokens behind the name of a scheme, RFC 6750.
const defaultTokenHeader = "Authorization"

// A source is where claims come from: a header, by its canonical name, and what verifies the
// token in it. A client writes whatever it claims into a token that nothing verifies, unless
// somebody in front of the sidecar, or behind it, refuses tokens that were not issued.
type source struct {
	header string
	by     *jwt.Verifier // nil: nothing
}

// A token is what one source says of the sender of a request.
type token struct {
	source

	claims map[string]any // with json.Number for numbers; nil when there are none
}

// claims returns those of a source; nil when there is no token, it cannot be read, or it is
// not verified and should be. Each token is parsed, and verified by each verifier, once.
func (f *facts) claims(of source) map[string]any {
	for i := range f.tokens {
		if f.tokens[i].source == of {
			return f.tokens[i].claims
		}
	}
	found := token{source: of}
	switch compact := tokenIn(f.http, of.header); {
	case of.by == nil:
		found.claims = parseToken(compact)
	case compact != "":
		found.claims, _ = of.by.Claims(compact, time.Now()) // nil for whatever reason
	}
	f.tokens = append(f.tokens, found)
	return found.claims
}

// tokenIn returns the token that the first value of a header carries. The scheme may be
// left out of every header but Authorization.
func tokenIn(r *http.Request, header string) string {
	values := r.Header[header]
	if len(values) == 0 {
		return ""
	}
	value := strings.TrimLeft(values[0], " ")
	if scheme, rest, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.Trim(rest, " ")
	}
	if header == defaultTokenHeader {
		return ""
	}
	return value
}

// parseToken returns the claims of a JSON Web Token in compact form, RFC 7519, and nil
// for what is not one or has more than jwt.MaxToken bytes. It verifies nothing.
func parseToken(compact string) map[string]any {
	if len(compact) > jwt.MaxToken || strings.Count(compact, ".") != 2 {
		return nil
	}
	_, rest, _ := strings.Cut(compact, ".")
	payload, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var claims map[string]any
	if err := dec.Decode(&claims); err != nil {
		return nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	return claims
}
