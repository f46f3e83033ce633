// Package jwt verifies JSON Web Tokens (RFC 7519) against public keys that somebody else
// has read: PublicKeys makes a set of them fit to be sent on, and a Verifier returns the
// claims of tokens that these keys verify. Signatures and encodings are go-jose's.
//
// Only asymmetric algorithms are known, so a key that verifies a token cannot make one, and
// no public key can be passed off as a secret. Time is an argument.
package jwt
