package v1alpha1

// JWTProvider says which JSON Web Tokens are accepted, and by which keys they
// are verified. A token is accepted when one of the keys signed it with one of
// the algorithms, its claims name the issuer and one of the audiences, and its
// time has come and is not over. It has to name when it expires (exp), and no
// claim twice. A request without an accepted token lacks the claims that name
// the provider.
type JWTProvider struct {
	// name by which claims refer to the provider, a DNS label of at most 63
	// characters.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="not a DNS label: use lower-case letters, digits and dashes, starting and ending with a letter or digit, such as accounts"
	Name string `json:"name"`

	// issuer that tokens name: the very value of their claim iss, such as
	// https://accounts.example.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Issuer string `json:"issuer"`

	// audiences; a token names at least one in its claim aud. Absent: any token of
	// the issuer is accepted, also those that it issued for other services. At
	// most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Audiences []string `json:"audiences,omitempty"`

	// algorithms that tokens may be signed with, by default RS256, PS256, ES256
	// and EdDSA. Those with a shared secret, such as HS256, do not exist here:
	// every pod would know it, and could make tokens.
	// +optional
	// +listType=set
	// +kubebuilder:default={RS256, PS256, ES256, EdDSA}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Algorithms []JWTAlgorithm `json:"algorithms,omitempty"`

	// clockSkew is how far the clock of the issuer may be off, 0s to 5m, by
	// default 1m: tokens are accepted that long before their time and after it.
	// +optional
	// +kubebuilder:default="1m"
	ClockSkew ClockSkew `json:"clockSkew,omitempty"`

	// jwks is the JSON Web Key Set of the issuer. At most 16 keys of it are used:
	// RSA of 2048 to 8192 bits, EC on P-256, P-384 and P-521, and Ed25519. A set
	// with a symmetric or a private key is refused.
	// +required
	JWKS JWKS `json:"jwks"`
}

// JWTAlgorithm is an algorithm that tokens are signed with.
// +kubebuilder:validation:Enum=RS256;RS384;RS512;PS256;PS384;PS512;ES256;ES384;ES512;EdDSA
type JWTAlgorithm string

// JWKS says where the keys of an issuer are.
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.secretRef), has(self.inline)].filter(given, given).size() == 1",message="set exactly one of url, secretRef and inline"
type JWKS struct {
	// url from which the leading controller reads the set, every 5 minutes, such
	// as https://accounts.example.com/.well-known/jwks.json. The certificate of
	// the server is signed by an authority of the controller's system. Redirects
	// are not followed. A name without a dot is that of a Service in the namespace
	// of this object. With http the controller connects only to networks that an
	// administrator has allowed. While the set cannot be read, the keys that were
	// read last are used; the condition JWTKeysAvailable says why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@\\\\s]+([/?][^#\\\\s]*)?$') && isURL(self)",message="not the URL of a key set: write https, a host and a path, without a user and without a fragment, such as https://accounts.example.com/.well-known/jwks.json"
	URL string `json:"url,omitempty"`

	// secretRef names a Secret whose key jwks.json holds the set. Changes of it
	// reach the pods within half a minute.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// inline is the set itself, of at most 16384 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Inline string `json:"inline,omitempty"`
}

// ClockSkew is how far two clocks may be apart.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('5m')",message="not a duration from 0s to 5m: write whole numbers of m, s and ms, such as 30s or 1m"
type ClockSkew string

// Verification says whether a token is verified before its claims are read.
// +kubebuilder:validation:Enum=Unverified;Verified
type Verification string

// The verifications.
const (
	Unverified Verification = "Unverified"
	Verified   Verification = "Verified"
)
