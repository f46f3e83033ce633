package translate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

func (t *translator) key(path *field.Path, k *v1alpha1.Key) *policy.Key {
	if k == nil {
		return nil
	}
	out := &policy.Key{OnMissing: policy.OnMissing(k.OnMissing), MaxKeys: int(k.MaxKeys)}
	for i, part := range k.Parts {
		out.Parts = append(out.Parts, t.keyPart(path.Child("parts").Index(i), part))
	}
	return out
}

func (t *translator) poolKey(path *field.Path, k *v1alpha1.PoolKey) *policy.PoolKey {
	if k == nil {
		return nil
	}
	parts := t.key(path, &v1alpha1.Key{Parts: k.Parts, OnMissing: k.OnMissing})
	return &policy.PoolKey{Parts: parts.Parts, OnMissing: parts.OnMissing, Limit: k.Limit, Queue: t.queue(path.Child("queue"), k.Queue)}
}

func (t *translator) keyPart(path *field.Path, p v1alpha1.KeyPart) policy.KeyPart {
	out := policy.KeyPart{Type: policy.KeySource(p.Type), Expression: p.Expression}
	switch {
	case p.Header != nil:
		out.Header = string(p.Header.Name)
	case p.QueryParam != nil:
		out.Name = string(p.QueryParam.Name)
	case p.JWTClaim != nil:
		out.Header, out.Name = string(p.JWTClaim.Header), string(p.JWTClaim.Claim)
		out.Provider = t.provider(path.Child("jwtClaim"), p.JWTClaim.Verification, p.JWTClaim.Provider)
	case p.Descriptor != nil:
		out.Name = string(p.Descriptor.Key)
	case p.Type == v1alpha1.PeerIdentityPart && !t.trusts:
		t.invalid(path.Child("type"), p.Type, "an identity is believed only from a proxy that the policy trusts: set spec.clientIP, for a mesh trustedCIDRs to the address that its proxy calls from, such as 127.0.0.6/32")
	case p.Expression != "":
		t.expression(path.Child("expression"), p.Expression, policy.ValidateValue)
	}
	return out
}

// keyValue returns a value as requests have it.
func (t *translator) keyValue(path *field.Path, k *policy.Key, v v1alpha1.KeyValue) policy.Value {
	var value policy.Value
	for i, part := range v.Parts {
		if k != nil && i < len(k.Parts) {
			part = t.part(path.Child("parts").Index(i), k.Parts[i], part)
		}
		value = append(value, part)
	}
	return value
}

func (t *translator) part(path *field.Path, p policy.KeyPart, value string) string {
	canonical, err := p.Canonical(value)
	if err != nil {
		t.invalid(path, field.OmitValueType{}, err.Error())
	}
	return canonical
}
