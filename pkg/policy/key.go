package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/weir-dev/weir/pkg/store"
)

// An Outcome says what a limit's key makes of a request.
type Outcome uint8

// The outcomes.
const (
	Counted  Outcome = iota // the value names the counter
	Skipped                 // a part is missing and the limit does not apply then
	Rejected                // a part is missing, or has values that differ, and the request is to be refused with 400
)

// missingValue is what requests without the key, or with several, are counted under when
// they share a counter. No request can choose it: it is longer than any single part and,
// unlike several, does not begin with a digit.
var missingValue = "missing" + strings.Repeat(".", maxPart)

// MissingValue returns the value that requests without the key, or with several, are counted
// under where they share a counter.
func MissingValue() string { return missingValue }

// Value returns the value that r is counted under, and the part that is missing
// when the outcome is Rejected. Only a limit without a key has the empty value.
func (l *CompiledLimit) Value(r *Request) (value string, outcome Outcome, missing KeyPart) {
	return l.key.value(r)
}

// Parts returns the parts of the value that r is counted under, as the check API takes them; nil
// for a limit without a key, and where a part is missing or has values that differ.
func (l *CompiledLimit) Parts(r *Request) []string {
	var found [MaxParts]string
	if i, _ := l.key.read(r, &found); i >= 0 || len(l.key.parts) == 0 {
		return nil
	}
	return slices.Clone(found[:len(l.key.parts)])
}

// JoinParts returns the value that a key with these parts has. A single part
// stands for itself; several are written with their lengths, "4:gold3:GET", so
// that no choice of bytes in one part reads as another list of parts. Parts
// longer than 128 bytes are cut and carry a digest of the whole, which bounds
// the memory that a client's choice of values can take.
func JoinParts(parts ...string) string {
	if len(parts) == 1 {
		return shorten(parts[0])
	}
	buf := make([]byte, 0, 128)
	for _, p := range parts {
		p = shorten(p)
		buf = strconv.AppendInt(buf, int64(len(p)), 10)
		buf = append(buf, ':')
		buf = append(buf, p...)
	}
	return string(buf)
}

// maxPart is the longest part that stands for itself.
const maxPart = 128

// shorten returns parts of at most maxPart bytes unchanged and any other as a
// string one byte longer than that, so the two kinds never meet.
func shorten(part string) string {
	if len(part) <= maxPart {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	digest := hex.EncodeToString(sum[:])
	return part[:maxPart+1-len(digest)] + digest
}

type keyer struct {
	parts     []part // none for a limit without a key
	onMissing OnMissing
	client    clientFinder
}

// A part is a KeyPart with its header in canonical form.
type part struct {
	KeyPart

	program *program // of ExpressionKey
	of      source   // of JWTClaimKey
}

func compileKey(k *Key, client clientFinder, tokens verifiers) (keyer, error) {
	if k == nil {
		return keyer{}, nil
	}
	c := keyer{onMissing: k.OnMissing, client: client}
	for i, p := range k.Parts {
		p.Header = http.CanonicalHeaderKey(p.Header)
		compiled := part{KeyPart: p, of: source{p.Header, tokens[p.Provider]}}
		if p.Type == ExpressionKey {
			var err error
			if compiled.program, err = programs.of(p.Expression, cel.StringType); err != nil {
				return keyer{}, fmt.Errorf("%s: %w", entry("key.parts", i), err)
			}
		}
		c.parts = append(c.parts, compiled)
	}
	return c, nil
}

func (k *keyer) value(r *Request) (string, Outcome, KeyPart) {
	if len(k.parts) == 0 {
		return "", Counted, KeyPart{}
	}
	var found [MaxParts]string
	if i, others := k.read(r, &found); i >= 0 {
		return k.missing(k.parts[i].KeyPart, others)
	}
	return JoinParts(found[:len(k.parts)]...), Counted, KeyPart{}
}

// read fills in the parts. It returns the index of one that is missing or has values that
// differ, and which of both it is; below 0 when there is none.
func (k *keyer) read(r *Request, found *[MaxParts]string) (at int, others bool) {
	for i := range k.parts {
		value, others := k.part(&k.parts[i], r)
		if value == "" || others {
			return i, others
		}
		found[i] = value
	}
	return -1, false
}

// missing returns what becomes of a request that lacks a part, or has several values of
// it that differ: apps differ in which one they take, so a client that sends them could have
// a new counter for each request by the value that the app does not take. Nor do they
// lift the limit, as to send none may.
func (k *keyer) missing(part KeyPart, differing bool) (string, Outcome, KeyPart) {
	switch {
	case k.onMissing == Reject:
		return "", Rejected, part
	case k.onMissing == Skip && !differing:
		return "", Skipped, part
	default:
		return missingValue, Counted, part
	}
}

// part returns the part's value, empty when the request lacks it, and whether it has
// others that differ.
func (k *keyer) part(p *part, r *Request) (value string, others bool) {
	if r.http == nil || p.Type == DescriptorKey {
		return r.entry(p.KeyPart), false
	}
	switch p.Type {
	case HeaderKey:
		return headerOf(r.http, p.Header)
	case ClientIPKey:
		return k.client.find(r.http), false
	case PathKey:
		return r.path, false
	case HostKey:
		return hostOf(r.http.Host), false
	case QueryParamKey:
		return parameter(r.http.URL.RawQuery, p.Name)
	case JWTClaimKey:
		text, _ := claimText(claimAt(r.known().claims(p.of), p.Name))
		_, others = headerOf(r.http, p.Header)
		return text, others
	case PeerIdentityKey:
		return k.client.identity(r.http), false
	case ExpressionKey:
		return evaluate(p.program, r, &k.client), false
	default:
		return r.http.Method, false
	}
}

// headerOf returns the first value of a header, and whether it has others that differ.
func headerOf(r *http.Request, name string) (first string, others bool) {
	if name == "Host" {
		return r.Host, false
	}
	values := r.Header[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], slices.ContainsFunc(values[1:], func(v string) bool { return v != values[0] })
}

// tenants finds the tenant that a fair limit charges.
type tenants struct {
	part     keyer
	declared map[string]string // hash by name, so that the known ones cost no hash
}

func compileTenants(f *Fairness, client clientFinder, tokens verifiers) (tenants, error) {
	if f == nil {
		return tenants{}, nil
	}
	part, err := compileKey(&Key{Parts: []KeyPart{f.Tenant}, OnMissing: Shared}, client, tokens)
	if err != nil {
		return tenants{}, err
	}
	t := tenants{part: part, declared: make(map[string]string, len(f.Weights)+1)}
	t.declared[missingValue] = store.HashValue(missingValue)
	for _, w := range f.Weights {
		name := JoinParts(w.Tenant)
		t.declared[name] = store.HashValue(name)
	}
	return t, nil
}

// Tenant returns the hash, by store.HashValue, of the tenant that r belongs to;
// empty for a limit without fairness. Requests that name none belong to one
// tenant together.
func (l *CompiledLimit) Tenant(r *Request) string {
	if l.Limit.Fairness == nil {
		return ""
	}
	name, _, _ := l.tenants.part.value(r)
	return l.tenants.hash(name)
}

// TenantName returns the tenant that r names; empty for none, and for a limit without fairness.
func (l *CompiledLimit) TenantName(r *Request) string {
	var found [MaxParts]string
	if l.Limit.Fairness == nil {
		return ""
	}
	if i, _ := l.tenants.part.read(r, &found); i >= 0 {
		return ""
	}
	return found[0]
}

// TenantNamed returns what Tenant does for requests that name this tenant, or none
// when it is empty.
func (l *CompiledLimit) TenantNamed(name string) string {
	switch {
	case l.Limit.Fairness == nil:
		return ""
	case name == "":
		return l.tenants.hash(missingValue)
	default:
		return l.tenants.hash(JoinParts(name))
	}
}

func (t *tenants) hash(name string) string {
	if hash, ok := t.declared[name]; ok {
		return hash
	}
	return store.HashValue(name)
}
