package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Snapshot is everything one sidecar enforces.
type Snapshot struct {
	Cluster  string   `json:"cluster"`            // prefix of every counter's name
	Policies []Policy `json:"policies,omitempty"` // ordered by namespace and name
	// Pool is the one pool of all requests, nil for none. Pools are those that match some,
	// ordered by namespace and name. A request needs a slot of each that it belongs to. All
	// are at most MaxPools, each of another name.
	Pool  *Pool  `json:"pool,omitempty"`
	Pools []Pool `json:"pools,omitempty"`
}

// A Policy is one RateLimitPolicy, resolved. A request that several limits or
// policies match is admitted only when all of them admit it.
type Policy struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"` // orders the versions of the name; stores refuse lower ones

	Mode  Mode  `json:"mode"`
	Store Store `json:"store"`
	// Since is when the store took the counters over from another one, on its own
	// clock; 0 when it never did. Draining says that another store is about to take
	// over: nothing is asked of this one, and nothing is admitted on its word.
	Since       limiter.Instant `json:"since,omitempty"`
	Draining    bool            `json:"draining,omitempty"`
	Consistency Consistency     `json:"consistency"`
	// ResetAt is when a counter of the policy was set back last, on the store's clock; 0
	// for never. A store may grant again what it refused before.
	ResetAt limiter.Instant `json:"resetAt,omitempty"`

	// OnStoreUnavailable decides requests when credits in hand are spent and the
	// store does not answer.
	OnStoreUnavailable Action `json:"onStoreUnavailable"`

	ClientIP ClientIP `json:"clientIP,omitzero"`
	// JWTProviders verify tokens, at most MaxProviders.
	JWTProviders []JWTProvider `json:"jwtProviders,omitempty"`

	Response Response `json:"response,omitzero"` // zero: DefaultResponse, which Compile fills in
	Limits   []Limit  `json:"limits"`            // 1 to 32, in the order of the object
	// AnyOf are groups of limits, at most MaxGroups, each by 2 to MaxAlternatives names in the
	// order in which they are asked. One of each group has to admit a request.
	AnyOf [][]string `json:"anyOf,omitempty"`
}

// Mode says what a refusal does.
type Mode string

// The modes of a policy.
const (
	Enforce Mode = "Enforce" // refuse the request
	Shadow  Mode = "Shadow"  // count the refusal and let the request pass
)

// StoreType names a kind of L2 store.
type StoreType string

// The stores.
const (
	ControllerStore StoreType = "Controller" // the leading controller's memory, reached over the fleet stream
	RedisStore      StoreType = "Redis"
	PostgresStore   StoreType = "Postgres"
	// GatewayStore is a Redis or a Postgres as sidecars see it that lease from it through the
	// leading controller. It has no more than an Address, which leads nowhere else.
	GatewayStore StoreType = "Gateway"
)

// Store says where the counters of a policy are kept. Two that are equal are one
// store and share their connections.
type Store struct {
	Type StoreType `json:"type"`
	// Address is host:port of Redis or Postgres; of a Redis Cluster or of Sentinels
	// several, separated by commas. The port of Postgres may be left out. It means the
	// same server in every namespace. Of type Gateway it is a name by which the controller
	// knows the store.
	Address string `json:"address,omitempty"`
	// REST makes the address the URL of a Redis that is reached over HTTP. TLS says whether
	// it begins with https.
	REST bool `json:"rest,omitempty"`
	// Cluster makes the addresses nodes of a Redis Cluster.
	Cluster bool `json:"cluster,omitempty"`
	// Sentinel is the name of the primary that the Sentinels at the addresses watch.
	Sentinel string `json:"sentinel,omitempty"`
	// Database is the database of Postgres.
	Database string `json:"database,omitempty"`
	// TLS encrypts the connections, by the names and authorities of the system or of
	// the secret.
	TLS bool `json:"tls,omitempty"`
	// Secret names the credentials, as "namespace/name". Their values are not part
	// of a snapshot; SecretVersion changes with them.
	Secret        string `json:"secret,omitempty"`
	SecretVersion string `json:"secretVersion,omitempty"`
	// Gateway has sidecars reach the Redis or Postgres through the leading controller only.
	// They are sent Sent in its place.
	Gateway bool `json:"gateway,omitempty"`
}

// Sent returns the store as sidecars are sent it. Of one that they reach through the
// controller that is a name, and neither where it is nor how it is opened. The name changes
// with all that makes another store of it, and not with its credentials.
func (s Store) Sent() Store {
	if !s.Gateway {
		return s
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		string(s.Type), s.Address, strconv.FormatBool(s.REST), strconv.FormatBool(s.Cluster), s.Sentinel, s.Database,
		strconv.FormatBool(s.TLS), s.Secret,
	}))
	return Store{Type: GatewayStore, Address: hex.EncodeToString(sum[:gatewayName])}
}

// gatewayName is how many bytes name a store of type Gateway.
const gatewayName = 8

// Server names the servers of the store, whatever the credentials: stores of the same name
// have the same clocks.
func (s Store) Server() string {
	return strings.Join([]string{string(s.Type), s.Address, s.Sentinel}, "|")
}

// Name returns the store as users see it.
func (s Store) Name() string {
	switch s.Type {
	case RedisStore:
		return "redis at " + s.Address
	case PostgresStore:
		return "postgres at " + s.Address
	case GatewayStore:
		return "store " + s.Address + " behind the controller"
	default:
		return "controller"
	}
}

// ConsistencyMode says how often the store is asked.
type ConsistencyMode string

// The consistency modes.
const (
	Leased     ConsistencyMode = "Leased"     // once a batch; credits expire, so still exact
	CachedDeny ConsistencyMode = "CachedDeny" // once a request that is admitted; refusals are remembered
	Strict     ConsistencyMode = "Strict"     // once a request
)

// SizeType says how the size of a lease is chosen.
type SizeType string

// The ways to size a lease.
const (
	Adaptive   SizeType = "Adaptive"   // learned from the demand of past windows
	Predictive SizeType = "Predictive" // a forecast, as far as it proves better than what was learned
	Fixed      SizeType = "Fixed"      // Batch
)

// Expiry says when leased credits die.
type Expiry string

// The expiries.
const (
	Coupled   Expiry = "Coupled"   // with the window, or the lifetime, of the grant
	CarryOver Expiry = "CarryOver" // when they are spent: admits limit + holders · (batch − 1)
)

// Consistency says how a sidecar uses the store. All but the mode applies to Leased.
type Consistency struct {
	Mode   ConsistencyMode `json:"mode"`
	Size   SizeType        `json:"size,omitempty"`
	Batch  int64           `json:"batch,omitempty"`  // units of one lease, at least 1; what Adaptive and Predictive begin with
	Min    int64           `json:"min,omitempty"`    // least that Adaptive and Predictive choose, at least 1
	Max    int64           `json:"max,omitempty"`    // most they choose, at least Min
	Expiry Expiry          `json:"expiry,omitempty"` // Coupled or CarryOver
	// LowWater is the number of credits left at which the next lease is asked for
	// ahead of need; 0 asks when they are spent.
	LowWater int64 `json:"lowWater,omitempty"`
	// ReturnIdleAfter gives back the credits of a key that was not asked for so
	// long; 0 leaves it to the sidecar when, if at all.
	ReturnIdleAfter limiter.Micros `json:"returnIdleAfter,omitempty"`
}

// Action is what a sidecar does while a store is unavailable.
type Action string

// The failure actions.
const (
	LocalShare Action = "LocalShare" // from the next window on, enforce limit / holders alone
	Allow      Action = "Allow"      // admit
	Deny       Action = "Deny"       // refuse
)

// ClientIP says which hop's word on the client's address is trusted. With
// neither field set only the TCP peer is.
type ClientIP struct {
	TrustedHops  int      `json:"trustedHops,omitempty"`  // proxies in front of the pod, counted from the pod outwards
	TrustedCIDRs []string `json:"trustedCIDRs,omitempty"` // networks of proxies in front of the pod
}

// A Limit is one named limit of a policy.
type Limit struct {
	Name   string  `json:"name"`
	Mode   Mode    `json:"mode,omitempty"`   // Shadow counts refusals and lets pass; empty: as the policy
	Match  []Match `json:"match,omitempty"`  // one must match; none means every request
	Exempt []Match `json:"exempt,omitempty"` // requests that one of these matches are not counted
	Key    *Key    `json:"key,omitempty"`    // nil: one counter for the whole fleet

	Algorithm Algorithm      `json:"algorithm,omitempty"` // empty: FixedWindow
	Rates     []limiter.Rate `json:"rates"`               // 1 to limiter.MaxRates
	Budget    *BudgetRef     `json:"budget,omitempty"`    // what several clusters share; nil for a limit of this one alone
	Clusters  int64          `json:"clusters,omitempty"`  // that share the limit of each value of the budget's key; 0 for a budget without one
	Any       bool           `json:"any,omitempty"`       // one rate that admits is enough
	Buckets   int64          `json:"buckets,omitempty"`   // of SlidingWindow
	MaxDelay  limiter.Micros `json:"maxDelay,omitempty"`  // of LeakyBucket
	Lifetime  limiter.Micros `json:"lifetime,omitempty"`  // of credits that are time-coupled
	// Retention is how the store keeps the counters.
	Retention limiter.Retention `json:"retention,omitzero"`
	// Pending is true until it is written down in which memory of its store the limit
	// begins. That is not asked before: the policy's OnStoreUnavailable decides.
	Pending bool `json:"pending,omitempty"`

	Overrides []Override `json:"overrides,omitempty"` // of single values of the key
	Cost      *Cost      `json:"cost,omitempty"`      // nil: every request costs 1
	Fairness  *Fairness  `json:"fairness,omitempty"`
}

// Algorithm names a limiter.Algorithm.
type Algorithm string

// The algorithms.
const (
	FixedWindow   Algorithm = "FixedWindow" // and quotas
	SlidingWindow Algorithm = "SlidingWindow"
	SlidingLog    Algorithm = "SlidingLog"
	TokenBucket   Algorithm = "TokenBucket"
	GCRA          Algorithm = "GCRA"
	LeakyBucket   Algorithm = "LeakyBucket"
)

// An Override gives some values of a limit's key rates of their own, on the
// counters they have anyway.
type Override struct {
	Values []Value        `json:"values"`
	Rates  []limiter.Rate `json:"rates"`
}

// A Value is one value of a key: one string for each part.
type Value []string

// Cost says what a request costs. A header that is missing, or no whole number,
// says nothing; what is above Max counts as Max.
type Cost struct {
	Default int64 `json:"default"` // when no header says, at least 1
	Max     int64 `json:"max"`     // at least Default
	// RequestHeader names the cost, from 1.
	RequestHeader string `json:"requestHeader,omitempty"`
	// ResponseHeader names the cost after the fact, from 0: Default, or what the
	// request names, is reserved, and the difference is settled when the response
	// begins.
	ResponseHeader string `json:"responseHeader,omitempty"`
}

// Fairness splits a limit over tenants by weight, as limiter.Fairness does.
type Fairness struct {
	Tenant        KeyPart  `json:"tenant"`
	Weights       []Weight `json:"weights,omitempty"` // the declared tenants
	DefaultWeight int64    `json:"defaultWeight"`     // of each other tenant, at least 1
	Reserve       bool     `json:"reserve,omitempty"` // what idle declared tenants do not use
}

// A Weight is a declared tenant's.
type Weight struct {
	Tenant string `json:"tenant"`
	Weight int64  `json:"weight"` // 1 to limiter.MaxWeight
}
