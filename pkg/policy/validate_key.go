package policy

import (
	"fmt"
	"net/netip"

	"golang.org/x/net/http/httpguts"
)

func (k *Key) validate(errs *problems, path string) {
	errs.count(path+".parts", len(k.Parts), 1, MaxParts)
	for i, part := range k.Parts {
		part.validate(errs, path+entry(".parts", i))
	}
	oneOf(errs, path+".onMissing", k.OnMissing, Shared, Skip, Reject)
	errs.within(path+".maxKeys", int64(k.MaxKeys), 1, MaxTrackedKeys)
}

func (p KeyPart) validate(errs *problems, path string) {
	oneOf(errs, path+".type", p.Type, HeaderKey, ClientIPKey, PathKey, MethodKey,
		HostKey, QueryParamKey, JWTClaimKey, ExpressionKey, DescriptorKey)
	switch p.Type {
	case HeaderKey, JWTClaimKey:
		errs.header(path+".header", p.Header)
	default:
		errs.absent(path+".header", p.Header, p.Type)
	}
	switch p.Type {
	case JWTClaimKey:
		errs.claim(path+".name", p.Name)
	case QueryParamKey, DescriptorKey:
		errs.text(path+".name", p.Name, 1)
	default:
		errs.absent(path+".name", p.Name, p.Type)
	}
	if p.Type == ExpressionKey {
		errs.failed(path+".expression", ValidateValue(p.Expression))
	} else {
		errs.absent(path+".expression", p.Expression, p.Type)
	}
}

// absent refuses a setting that parts of the type do not have.
func (p *problems) absent(path, value string, of KeySource) {
	if value != "" {
		p.add(path, "is %q, which type %s does not read: remove it", value, of)
	}
}

// Canonical returns the value that requests have for this part when a person wrote
// it as value: a path without dot segments, an address as CompiledLimit.Value
// names it. It fails for what no request has.
func (p KeyPart) Canonical(value string) (string, error) {
	if value == "" || len(value) > maxPattern {
		return "", fmt.Errorf("has %d bytes: write 1 to %d", len(value), maxPattern)
	}
	switch p.Type {
	case ClientIPKey:
		return canonicalAddress(value)
	case PathKey:
		if value[0] != '/' {
			return "", fmt.Errorf("is %q: a path starts with a slash", value)
		}
		return cleanPath(value), nil
	case MethodKey:
		if !httpguts.ValidHeaderFieldName(value) {
			return "", fmt.Errorf("is %q: write a method such as GET", value)
		}
		return value, nil
	case HostKey:
		if host := hostOf(value); host != "" {
			return host, nil
		}
		return "", fmt.Errorf("is %q: write a host such as shop.example.com", value)
	default:
		return value, nil
	}
}

// canonicalAddress reads an address, or the /64 that an IPv6 client counts by.
func canonicalAddress(value string) (string, error) {
	if network, err := netip.ParsePrefix(value); err == nil && network.Addr().Is6() && network.Bits() == ipv6Bits {
		return network.Masked().String(), nil
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return "", fmt.Errorf("is %q: write an address such as 192.0.2.1 or the /64 of an IPv6 client", value)
	}
	return partOf(addr.Unmap().WithZone("")), nil
}

func (p KeyPart) validateValue(errs *problems, path, value string) {
	canonical, err := p.Canonical(value)
	switch {
	case err != nil:
		errs.add(path, "%w", err)
	case canonical != value:
		errs.add(path, "is %q, which no request has: write %q", value, canonical)
	}
}
