package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxToken is the most bytes of a token that is read.
const maxToken = 8 << 10

// defaultTokenHeader carries tokens behind the name of a scheme, RFC 6750.
const defaultTokenHeader = "Authorization"

// A token is what one header of a request says of its sender.
type token struct {
	header string
	claims map[string]any // with json.Number for numbers; nil when it has no token
}

// claims returns the claims of the token in a header, by its canonical name; nil when
// there is none or it cannot be read. Each token is parsed once. Nobody has verified
// it: a client writes whatever it claims, unless somebody in front of
// the sidecar, or behind it, refuses tokens that were not issued.
func (f *facts) claims(header string) map[string]any {
	for i := range f.tokens {
		if f.tokens[i].header == header {
			return f.tokens[i].claims
		}
	}
	claims := parseToken(tokenIn(f.http, header))
	f.tokens = append(f.tokens, token{header: header, claims: claims})
	return claims
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
// for what is not one or has more than maxToken bytes. It verifies nothing.
func parseToken(compact string) map[string]any {
	if len(compact) > maxToken || strings.Count(compact, ".") != 2 {
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
