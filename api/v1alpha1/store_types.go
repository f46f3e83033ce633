package v1alpha1

// PolicyStore says where the counters of a policy are kept, and how firmly.
// +kubebuilder:validation:XValidation:rule="!has(self.memory) || self.memory != 'Volatile' || !has(self.onMemoryLoss) || self.onMemoryLoss != 'Resume'",fieldPath=".onMemoryLoss",message="onMemoryLoss Resume goes on with the counts that outlived a restart of the store, and memory Volatile keeps none: set memory to Durable, or onMemoryLoss to Wait"
// +kubebuilder:validation:XValidation:rule="!has(self.access) || self.access != 'Gateway' || (has(self.type) && self.type in ['Redis', 'Postgres'])",fieldPath=".access",message="access Gateway is for a Redis or a Postgres, and the controller's own store is always reached through the controller: remove access, or set type to Redis or Postgres"
type PolicyStore struct {
	Store `json:",inline"`

	// access says how the selected pods' sidecars reach a Redis or a Postgres.
	// Direct, the default: each one connects to it, and is sent its address and
	// the credentials of the Secret.
	// Gateway: they lease through the leading controller, which alone connects to
	// it and reads the Secret. Sidecars learn neither. A lease takes one hop more,
	// and while no controller leads the store counts as unavailable. The counters
	// are the same, so access can be changed at any time.
	// +optional
	// +kubebuilder:default=Direct
	Access StoreAccess `json:"access,omitempty"`

	// memory says which counters outlive a restart of the store.
	// Auto, the default, keeps those of limits that have a window longer than 1
	// minute.
	// Durable keeps those of every limit. In the controller what a leader grants
	// is set aside in the API server first, and a crash forfeits at most one such
	// block of each counter; Postgres writes them to disk before it answers; Redis
	// keeps them as its own persistence does, and status.guarantee says how firm
	// that is.
	// Volatile keeps none, which is the fastest: after a restart the windows that
	// were open then are not served.
	// +optional
	// +kubebuilder:default=Auto
	Memory StoreMemory `json:"memory,omitempty"`

	// onMemoryLoss says what becomes of the open windows of a limit whose counters
	// were to outlive a restart of the store and did not, or not all of them: the
	// disk was lost, or a replica took over that had not received the last grants.
	// Wait, the default, serves none of these windows again, so that none admits
	// more than its limit. The condition Learning says until when.
	// Resume goes on with the counts that are left. Each loss of memory may then
	// admit at most one more limit in the windows that are open. The controller's
	// own store always waits.
	// +optional
	// +kubebuilder:default=Wait
	OnMemoryLoss OnMemoryLoss `json:"onMemoryLoss,omitempty"`
}

// StoreAccess says how sidecars reach a store.
// +kubebuilder:validation:Enum=Direct;Gateway
type StoreAccess string

// The ways to reach a store.
const (
	DirectAccess  StoreAccess = "Direct"
	GatewayAccess StoreAccess = "Gateway"
)

// StoreMemory says which counters outlive a restart of the store.
// +kubebuilder:validation:Enum=Auto;Durable;Volatile
type StoreMemory string

// The memories of a store.
const (
	AutoMemory     StoreMemory = "Auto"
	DurableMemory  StoreMemory = "Durable"
	VolatileMemory StoreMemory = "Volatile"
)

// OnMemoryLoss says what becomes of open windows whose counts a store lost.
// +kubebuilder:validation:Enum=Wait;Resume
type OnMemoryLoss string

// The consequences of a loss of memory.
const (
	WaitOnMemoryLoss   OnMemoryLoss = "Wait"
	ResumeOnMemoryLoss OnMemoryLoss = "Resume"
)

// Store says where what pods share is kept: the counters of a policy, the
// shares of a pool.
// +kubebuilder:validation:XValidation:rule="self.type != 'Redis' || has(self.redis)",fieldPath=".redis",reason=FieldValueRequired,message="type Redis needs a server: set redis.address to host:port, or redis.sentinel, redis.cluster or redis.rest"
// +kubebuilder:validation:XValidation:rule="!has(self.redis) || self.type == 'Redis'",fieldPath=".redis",reason=FieldValueForbidden,message="redis is read only with type Redis: remove it, or set type to Redis"
// +kubebuilder:validation:XValidation:rule="self.type != 'Postgres' || has(self.postgres)",fieldPath=".postgres",reason=FieldValueRequired,message="type Postgres needs a server: set postgres.address and postgres.database"
// +kubebuilder:validation:XValidation:rule="!has(self.postgres) || self.type == 'Postgres'",fieldPath=".postgres",reason=FieldValueForbidden,message="postgres is read only with type Postgres: remove it, or set type to Postgres"
type Store struct {
	// type names the kind of store.
	// Controller, the default, keeps it in the memory of the leading controller;
	// nothing has to be installed.
	// Redis keeps it in a Redis server, a Redis Cluster, a server that Sentinels
	// watch, or a service that is reached over HTTP.
	// Postgres keeps it in a table that it makes for itself: for modest rates,
	// where a Postgres is there and a Redis is not.
	// +optional
	// +kubebuilder:default=Controller
	Type StoreType `json:"type,omitempty"`

	// redis names the servers of type Redis.
	// +optional
	Redis *RedisStore `json:"redis,omitempty"`

	// postgres names the server of type Postgres.
	// +optional
	Postgres *PostgresStore `json:"postgres,omitempty"`
}

// StoreType names a kind of store.
// +kubebuilder:validation:Enum=Controller;Redis;Postgres
type StoreType string

// The stores.
const (
	ControllerStore   StoreType = "Controller"
	RedisStoreType    StoreType = "Redis"
	PostgresStoreType StoreType = "Postgres"
)

// RedisStore names Redis servers.
// +kubebuilder:validation:XValidation:rule="[has(self.address), has(self.sentinel), has(self.cluster), has(self.rest)].filter(given, given).size() == 1",message="set exactly one of address (a single server), sentinel, cluster and rest (a service that is reached over HTTP)"
// +kubebuilder:validation:XValidation:rule="!has(self.rest) || !has(self.tls) || self.tls != 'Enabled'",fieldPath=".tls",message="rest says by its url whether connections are encrypted: write https in rest.url, and remove tls"
// +kubebuilder:validation:XValidation:rule="!has(self.rest) || has(self.secretRef)",fieldPath=".secretRef",reason=FieldValueRequired,message="rest asks for a token: set secretRef to a Secret that has it as rest-token"
type RedisStore struct {
	// address of a single server, host:port, as the selected pods and the
	// controllers reach it. A name without a dot is that of a Service in the
	// namespace of this object: redis means redis.<namespace>.svc. Write any other
	// name in full.
	// +optional
	Address HostPort `json:"address,omitempty"`

	// sentinel finds the server through the Sentinels that watch it. A failover
	// may forget the last grants, so the windows that were open then are not
	// served, and no share of a pool grows for one leaseTTL.
	// +optional
	Sentinel *RedisSentinel `json:"sentinel,omitempty"`

	// cluster finds the nodes of a Redis Cluster, which counters are spread over.
	// A pool is kept on one of them.
	// +optional
	Cluster *RedisCluster `json:"cluster,omitempty"`

	// rest reaches a service over HTTP, by the REST API that Upstash documents,
	// where no other way is open. The service must run scripts, not evict keys,
	// and take tokens that may write. Such services answer before their replicas
	// have copied, so the guarantee is at most HardExceptSplitBrain;
	// status.guarantee says what the service hides.
	// +optional
	REST *RedisREST `json:"rest,omitempty"`

	// tls says whether the connections are encrypted; those of rest are by its
	// url.
	// Disabled, the default: they are not.
	// Enabled: they are, and the server's certificate must be signed for its full
	// name by an authority of the system, or by ca.crt of the Secret.
	// +optional
	// +kubebuilder:default=Disabled
	TLS TLSMode `json:"tls,omitempty"`

	// secretRef names the Secret with the credentials. Its keys, each optional,
	// are username and password (of the server), sentinel-username and
	// sentinel-password (of the Sentinels), ca.crt (PEM, of the authority that
	// signs the server's certificate), tls.crt and tls.key (PEM, of the client's
	// certificate). Of rest they are rest-token, which is not optional, ca.crt,
	// tls.crt and tls.key.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// RedisSentinel names the Sentinels that watch a server.
type RedisSentinel struct {
	// addresses of the Sentinels, host:port each, 1 to 16, as the selected pods
	// and the controllers reach them. A name without a dot is that of a Service in
	// the namespace of this object; write any other name in full, also those that
	// Sentinels announce.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Addresses []HostPort `json:"addresses"`

	// primary is the name under which the Sentinels watch the server.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+$')",message="not the name of a primary: write what the line sentinel monitor names, letters, digits, dots, dashes and underscores, such as mymaster"
	Primary string `json:"primary"`
}

// RedisCluster names nodes of a Redis Cluster.
type RedisCluster struct {
	// addresses of nodes, host:port each, 1 to 16; the others are found through
	// them. A name without a dot is that of a Service in the namespace of this
	// object; write any other name in full, also those that nodes announce.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Addresses []HostPort `json:"addresses"`
}

// RedisREST names a service that is reached over HTTP.
type RedisREST struct {
	// url of the API, such as https://eu1-name-12345.upstash.io, as the selected
	// pods and the controllers reach it. The certificate must be signed for its
	// name by an authority of the system, or by ca.crt of the Secret. Redirects
	// are not followed. A name without a dot is that of a Service in the namespace
	// of this object. With http the token is not encrypted, and the controllers
	// connect only to networks that an administrator has allowed.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?(/[-._~A-Za-z0-9/]*)?$') && isURL(self)",message="not the URL of a Redis over HTTP: write https, a host and perhaps a port and a path, without a user and without a query, such as https://eu1-name-12345.upstash.io; the token is a value of the Secret"
	URL string `json:"url"`
}

// PostgresStore names a Postgres server.
type PostgresStore struct {
	// address of the primary, host:port, as the selected pods and the controllers
	// reach it. A name without a dot is that of a Service in the namespace of this
	// object: pg means pg.<namespace>.svc. Write any other name in full.
	// +required
	Address HostPort `json:"address"`

	// database that the table is made in. The user needs the right to create it
	// there.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-_$A-Za-z0-9]+$')",message="not the name of a database: use letters, digits, dashes and underscores, such as weir"
	Database string `json:"database"`

	// tls says whether the connections are encrypted.
	// Disabled, the default: they are not.
	// Enabled: they are, and the server's certificate must be signed for its full
	// name by an authority of the system, or by ca.crt of the Secret.
	// +optional
	// +kubebuilder:default=Disabled
	TLS TLSMode `json:"tls,omitempty"`

	// secretRef names the Secret with the credentials. Its keys, each optional,
	// are username and password, ca.crt (PEM, of the authority that signs the
	// server's certificate), tls.crt and tls.key (PEM, of the client's
	// certificate).
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// HostPort is a server's name or address, and its port.
// +kubebuilder:validation:MaxLength=260
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]]):[0-9]{1,5}$') && int(self.substring(self.lastIndexOf(':') + 1)) >= 1 && int(self.substring(self.lastIndexOf(':') + 1)) <= 65535",message="not host:port: write a name or an address and a port from 1 to 65535 without a scheme, such as redis.shop.svc:6379 or [fd00::1]:6379"
type HostPort string

// TLSMode says whether connections are encrypted.
// +kubebuilder:validation:Enum=Disabled;Enabled
type TLSMode string

// The TLS modes.
const (
	TLSDisabled TLSMode = "Disabled"
	TLSEnabled  TLSMode = "Enabled"
)

// SecretReference names a Secret in the namespace of the object. The
// controller reads it and hands it to the selected pods' sidecars over their
// authenticated connection; it needs the right to read it.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="not the name of a Secret: use lower-case letters, digits, dashes and dots, such as redis-credentials"
	Name string `json:"name"`
}

// OnStoreUnavailable says what a sidecar does while the store does not answer.
type OnStoreUnavailable struct {
	// action decides requests that no leased credit covers.
	// LocalShare, the default, starts with the next window: each pod that is cut
	// off admits limit / pods by itself.
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
