package v1alpha1

// BudgetHub is the cluster that keeps a budget.
type BudgetHub struct {
	// endpoint of the hub's controllers, host:port, as the controllers of this
	// cluster reach it.
	// +required
	Endpoint HostPort `json:"endpoint"`

	// secretRef names the Secret with the credentials that the hub made for this
	// member: a copy of weir-member-<name> there, with the keys ca.crt, tls.crt,
	// tls.key and token.
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// BudgetCoordinator says where a budget is kept.
// +kubebuilder:validation:XValidation:rule="self.type != 'Redis' || has(self.redis)",fieldPath=".redis",reason=FieldValueRequired,message="type Redis needs a server: set redis.address to host:port, or redis.sentinel, redis.cluster or redis.rest"
// +kubebuilder:validation:XValidation:rule="!has(self.redis) || self.type == 'Redis'",fieldPath=".redis",reason=FieldValueForbidden,message="redis is read only with type Redis: remove it, or set type to Redis"
// +kubebuilder:validation:XValidation:rule="self.type != 'Postgres' || has(self.postgres)",fieldPath=".postgres",reason=FieldValueRequired,message="type Postgres needs a server: set postgres.address and postgres.database"
// +kubebuilder:validation:XValidation:rule="!has(self.postgres) || self.type == 'Postgres'",fieldPath=".postgres",reason=FieldValueForbidden,message="postgres is read only with type Postgres: remove it, or set type to Postgres"
// +kubebuilder:validation:XValidation:rule="!has(self.blockPercent) || self.type == 'Kubernetes'",fieldPath=".blockPercent",reason=FieldValueForbidden,message="blockPercent is read only with type Kubernetes: remove it, or set type to Kubernetes"
type BudgetCoordinator struct {
	// type names the kind of coordinator.
	// Kubernetes, the default, makes this cluster the hub: its leading controller
	// grants from memory, and only from blocks that it set aside in the API server
	// before. Nothing has to be installed.
	// Redis and Postgres keep the budget in a server that every member reaches and
	// names alike; there is no hub.
	// +optional
	// +kubebuilder:default=Kubernetes
	Type CoordinatorType `json:"type,omitempty"`

	// blockPercent is how much of the limit type Kubernetes sets aside at once, 1
	// to 100, by default 10. A crash of the leading controller forfeits at most
	// one block of the open window; smaller blocks ask the API server more often.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	BlockPercent *int32 `json:"blockPercent,omitempty"`

	// redis names the servers of type Redis, as the controllers of all members
	// reach them.
	// +optional
	Redis *RedisStore `json:"redis,omitempty"`

	// postgres names the server of type Postgres, as the controllers of all
	// members reach it.
	// +optional
	Postgres *PostgresStore `json:"postgres,omitempty"`
}

// DefaultBlockPercent is how much type Kubernetes sets aside at once where it
// is not said.
const DefaultBlockPercent = 10

// CoordinatorType names a kind of coordinator.
// +kubebuilder:validation:Enum=Kubernetes;Redis;Postgres
type CoordinatorType string

// The coordinators of budgets.
const (
	KubernetesCoordinator CoordinatorType = "Kubernetes"
	RedisCoordinator      CoordinatorType = "Redis"
	PostgresCoordinator   CoordinatorType = "Postgres"
)

// BudgetEscrow says where a cluster keeps what it was granted.
// +kubebuilder:validation:XValidation:rule="self.type != 'Redis' || has(self.redis)",fieldPath=".redis",reason=FieldValueRequired,message="type Redis needs a server: set redis.address to host:port, or redis.sentinel, redis.cluster or redis.rest"
// +kubebuilder:validation:XValidation:rule="!has(self.redis) || self.type == 'Redis'",fieldPath=".redis",reason=FieldValueForbidden,message="redis is read only with type Redis: remove it, or set type to Redis"
type BudgetEscrow struct {
	// type names the kind of escrow.
	// Controller, the default, keeps the units in the memory of the leading
	// controller; its crash forfeits what it has in hand of the open window.
	// Redis keeps them in a Redis server of this cluster, so that the next leading
	// controller goes on with them. Limits with fairness cannot draw from such a
	// budget.
	// +optional
	// +kubebuilder:default=Controller
	Type EscrowType `json:"type,omitempty"`

	// redis names the servers of type Redis, as the controllers of this cluster
	// reach them.
	// +optional
	Redis *RedisStore `json:"redis,omitempty"`
}

// EscrowType names a kind of escrow.
// +kubebuilder:validation:Enum=Controller;Redis
type EscrowType string

// The escrows.
const (
	ControllerEscrow EscrowType = "Controller"
	RedisEscrow      EscrowType = "Redis"
)
