package policy

import "github.com/weir-dev/weir/pkg/store"

// tenants finds the tenant that a fair limit charges.
type tenants struct {
	part     keyer
	declared map[string]string // hash by name, so that the known ones cost no hash
}

func compileTenants(f *Fairness, client clientFinder) (tenants, error) {
	if f == nil {
		return tenants{}, nil
	}
	part, err := compileKey(&Key{Parts: []KeyPart{f.Tenant}, OnMissing: Shared}, client)
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
