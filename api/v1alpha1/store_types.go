package v1alpha1

// Consistency says how a sidecar uses the store. Both modes are exact while the
// store answers: no window admits more than its limit, for any number of pods.
// +kubebuilder:validation:XValidation:rule="self.mode == 'Leased' || !has(self.lease)",fieldPath=".lease",reason=FieldValueForbidden,message="lease is read only in mode Leased: remove it, or set mode to Leased"
type Consistency struct {
	// mode says how often the store is asked.
	// Leased, the default, asks once for a batch of credits and then decides in memory;
	// credits that are not spent die with their window.
	// Strict asks for every request.
	// +optional
	// +kubebuilder:default=Leased
	Mode ConsistencyMode `json:"mode,omitempty"`

	// lease tunes mode Leased.
	// +optional
	Lease *Lease `json:"lease,omitempty"`
}

// ConsistencyMode says how often the store is asked.
// +kubebuilder:validation:Enum=Leased;Strict
type ConsistencyMode string

// The consistency modes.
const (
	LeasedMode ConsistencyMode = "Leased"
	StrictMode ConsistencyMode = "Strict"
)

// Lease tunes the batches of credits that sidecars lease.
type Lease struct {
	// size says how many credits one lease asks for.
	// +optional
	// +kubebuilder:default={type: Fixed, batch: 100}
	Size LeaseSize `json:"size,omitzero"`
}

// LeaseSize says how many credits one lease asks for.
type LeaseSize struct {
	// type says how the size is found. Fixed, the default, always asks for batch.
	// +optional
	// +kubebuilder:default=Fixed
	Type LeaseSizeType `json:"type,omitempty"`

	// batch is the number of credits of one lease, 1 to 1000000, by default 100. Large
	// batches ask the store less often; small ones leave less of a window unspent in
	// the hands of a pod that does not need it.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Batch int64 `json:"batch,omitempty"`
}

// LeaseSizeType says how the size of a lease is found.
// +kubebuilder:validation:Enum=Fixed
type LeaseSizeType string

// FixedSize always asks for the same batch.
const FixedSize LeaseSizeType = "Fixed"

// DefaultBatch is the size of a lease where none is given.
const DefaultBatch = 100

// Store says where the counters are kept.
// +kubebuilder:validation:XValidation:rule="self.type != 'Redis' || has(self.redis)",fieldPath=".redis",reason=FieldValueRequired,message="type Redis needs a server: set redis.address to host:port"
// +kubebuilder:validation:XValidation:rule="self.type == 'Redis' || !has(self.redis)",fieldPath=".redis",reason=FieldValueForbidden,message="redis is read only with type Redis: remove it, or set type to Redis"
type Store struct {
	// type names the kind of store.
	// Controller, the default, keeps the counters in the memory of the leading
	// controller; nothing has to be installed. A crash of the leader leaves the open
	// windows unserved, so prefer Redis for windows over a minute.
	// Redis keeps them in a Redis server.
	// +optional
	// +kubebuilder:default=Controller
	Type StoreType `json:"type,omitempty"`

	// redis names the server of type Redis.
	// +optional
	Redis *RedisStore `json:"redis,omitempty"`
}

// StoreType names a kind of store.
// +kubebuilder:validation:Enum=Controller;Redis
type StoreType string

// The stores.
const (
	ControllerStore StoreType = "Controller"
	RedisStoreType  StoreType = "Redis"
)

// RedisStore names a Redis server.
type RedisStore struct {
	// address of the server, host:port, as the selected pods reach it.
	// +required
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]]):[0-9]{1,5}$') && int(self.substring(self.lastIndexOf(':') + 1)) >= 1 && int(self.substring(self.lastIndexOf(':') + 1)) <= 65535",message="not host:port: write a name or an address and a port from 1 to 65535 without a scheme, such as redis.shop.svc:6379 or [fd00::1]:6379"
	Address string `json:"address"`
}

// OnStoreUnavailable says what a sidecar does while the store does not answer.
type OnStoreUnavailable struct {
	// action decides requests that no leased credit covers.
	// LocalShare, the default, starts with the next window: each pod that is cut off
	// admits limit / pods by itself.
	// Allow admits them uncounted; WithinBound becomes Unknown.
	// Deny refuses them.
	// +optional
	// +kubebuilder:default=LocalShare
	Action FailureAction `json:"action,omitempty"`
}

// FailureAction is what a sidecar does while the store does not answer.
// +kubebuilder:validation:Enum=LocalShare;Allow;Deny
type FailureAction string

// The failure actions.
const (
	LocalShareAction FailureAction = "LocalShare"
	AllowAction      FailureAction = "Allow"
	DenyAction       FailureAction = "Deny"
)
